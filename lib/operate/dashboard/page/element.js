/**
 * An element with properties, attributes and children. Texts stay texts: nothing here makes HTML of one.
 *
 * `class`, `role`, `aria-…` and `data-…` are attributes, anything else a property.
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class' || name === 'role' || name.includes('-')) made.setAttribute(name, value)
    else made[name] = value
  }
  made.append(...children)
  return made
}

/** Sets a text only where it changes, so that nothing is selected or read anew for nothing. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}
