import { defineConfig } from 'vitest/config'

declare const process: { env: Record<string, string | undefined> }

// `FERRY_URL=http://127.0.0.1:8081 npm run dev` shows the pages of this folder with the data of that server.
const server = process.env.FERRY_URL ?? 'http://127.0.0.1:8081'
const proxied = ['/v1', '/auth', '/login', '/logout', '/device', '/account', '/invite', '/version', '/signed-in', '/link']
// The server checks the `Origin` of what a page sends: it has to be the server's own.
const proxy = Object.fromEntries(
  proxied.map((path) => [
    path,
    { target: server, changeOrigin: true, headers: { origin: server } },
  ]),
)

// As the server sends it: what it forbids, `npm run preview` forbids too.
const csp = [
  "default-src 'none'",
  ...['script', 'style', 'img', 'connect'].map((kind) => `${kind}-src 'self'`),
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

export default defineConfig({
  build: {
    target: 'es2022',
    // The content security policy allows no data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssMinify: true,
    reportCompressedSize: false,
    rolldownOptions: {
      // Libraries mark files for server components, which there are none of here.
      onLog: (level, log, handle) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && handle(level, log),
    },
  },
  // Tests read the API's document.
  server: { proxy, fs: { allow: ['..'] } },
  preview: { proxy, headers: { 'content-security-policy': csp } },
  test: { environment: 'jsdom', include: ['src/**/*.test.ts', 'src/**/*.test.tsx'] },
})
