import { setTimeout as delay } from 'node:timers/promises'
import { describeServers } from '../servers/describe-servers.js'
import { openScene, type ServerScene } from './open-scene.js'
import { RUN, survive } from './survive.js'
import type { Traffic } from './traffic.js'

describeServers('a network', ({ kind }) => {
  let scene: ServerScene
  beforeAll(async () => {
    scene = await openScene(kind)
  }, 120_000)
  afterAll(() => scene?.close(), 60_000)

  it('that is cut and heals', async () => {
    const { proxy } = scene
    const { codes } = await survive(scene, { begin: () => proxy.cut(), end: () => proxy.heal() })
    expect(Object.keys(codes)).toContain('ERR_STORE_CONNECTION')
  })

  it('that goes silent and heals (hazards 73, 78)', async () => {
    const { proxy } = scene
    const { codes } = await survive(scene, { begin: () => proxy.silence(), end: () => proxy.heal() })
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })

  it('in which new connections come to nothing (hazard 75)', async () => {
    const { proxy } = scene
    const { codes } = await survive(scene, { begin: () => proxy.blackHole(), end: () => proxy.heal() })
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })

  it('that forgets its connections, and tells neither end (hazard 78)', async () => {
    const { proxy } = scene
    const { codes } = await survive(scene, { begin: () => proxy.forget(), end: () => proxy.heal() })
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })

  it('that lets ten bytes through at a time', async () => {
    const { proxy } = scene
    const { codes } = await survive(scene, { begin: () => proxy.slow(10, 5), end: () => proxy.heal() })
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })

  it('that is gone when the store is closed: the process ends', async () => {
    const traffic = await scene.openTraffic()
    await traffic.start({ ...RUN, prefix: 'last' })
    await delay(300)
    scene.proxy.forget()
    await traffic.stop()
    await traffic.end()
    await scene.proxy.heal()
    // The server's ends of what the network has forgotten, and nobody is there any more to end.
    await scene.killAll()
  })

  describe.each([
    ['several statements in a packet', true],
    ['each statement on its own', false],
  ])('that loses connections, with %s,', (_, multipleStatements) => {
    let traffic: Traffic
    beforeAll(async () => {
      traffic = await scene.openTraffic({ uri: scene.uri, multipleStatements })
    })
    const breakAt = async (when: 'before' | 'after'): Promise<number> => {
      const { unknown } = await survive(
        { ...scene, traffic },
        {
          async begin() {
            for (let i = 0; i < 5; i += 1) await scene.proxy.breakAtCommit(when)
          },
          lastsMs: 0,
        },
      )
      return unknown
    }

    it('before COMMIT has arrived: nothing counts', async () => {
      expect(await breakAt('before')).toBe(0)
    })

    it('with the answer to COMMIT: it counts, and admits nobody twice (hazard 96)', async () => {
      expect(await breakAt('after')).toBeGreaterThan(0)
    })
  })
})
