import { WireCounter } from '../../bench/proxy/wire-counter.js'

/** A packet of the MySQL protocol. */
const packet = (length: number, sequence: number): Buffer =>
  Buffer.concat([Buffer.from([length & 255, length >> 8, 0, sequence]), Buffer.alloc(length, 7)])

test('commands are packets that begin a conversation, however they are cut', () => {
  const counter = new WireCounter()
  const bytes = Buffer.concat([packet(5, 0), packet(300, 1), packet(700, 0), packet(0, 0), packet(1, 0)])
  for (let i = 0; i < bytes.length; i += 3) counter.fromClient(bytes.subarray(i, i + 3))
  expect(counter.commands).toBe(4)
})

test('a round trip begins when the client speaks after the server', () => {
  const counter = new WireCounter()
  counter.fromClient(packet(1, 0))
  counter.fromClient(packet(1, 0))
  counter.fromServer()
  counter.fromServer()
  counter.fromClient(packet(1, 0))
  expect(counter.roundTrips).toBe(2)
})
