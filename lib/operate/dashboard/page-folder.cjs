// CommonJS, because only there a file of this package can tell, from both of its builds and from its sources, where it
// lies: `import.meta` does not compile to CommonJS, and ES modules have no `__dirname`.
const { dirname, join } = require('node:path')

exports.pageFolder = join(__dirname, 'page')
exports.chartFolder = () => join(dirname(require.resolve('uplot/package.json')), 'dist')
