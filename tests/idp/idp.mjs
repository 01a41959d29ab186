// A real OpenID provider for tests: `node idp.mjs` prints its issuer. Nobody types a password: the address of a sign-in says who it is.
//
//   GET  /admin/as/NAME      the next sign-ins are those of NAME; `deny` refuses
//   POST /admin/users/NAME   sets the claims of NAME
//   GET  /admin/rotate       signs with a new key from now on
//   GET  /admin/revoke       every grant is over: refresh tokens are refused
//   GET  /admin/age/SECONDS  ID tokens are so much older than they are
//   GET  /admin/nonce/TEXT   ID tokens of the next sign-ins have this nonce
//   GET  /admin/audience     the next ID token is one that was made for another client
import http from 'node:http'
import { createRequire } from 'node:module'
import { createPrivateKey, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { pathToFileURL } from 'node:url'

const require = createRequire(`${process.argv[2]}/`)
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')))

const signingKey = () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }
}
const users = {
  ann: { email: 'ann@example.com', email_verified: true, groups: [] },
  bob: { email: 'bob@elsewhere.test', email_verified: true, groups: [] },
  eve: { email: 'eve@example.com', email_verified: false, groups: [] },
}
const state = { who: 'ann', keys: [signingKey()], age: 0, nonce: null, swap: false, foreign: null }
let issuer, provider, answer

// What was given out before belongs to no grant any more.
const grants = new Map()

function start() {
  const client = (id) => ({
    client_id: id,
    client_secret: 'secret of tests',
    redirect_uris: ['http://127.0.0.1/auth/callback'],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  })
  provider = new Provider(issuer, {
    jwks: { keys: state.keys },
    cookies: { keys: ['of tests'] },
    pkce: { required: () => true },
    clients: [client('ferry'), client('other')],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    scopes: ['openid', 'email', 'groups', 'offline_access'],
    conformIdTokenClaims: false,
    findAccount: (_, sub) => users[sub] && { accountId: sub, claims: () => ({ sub, ...users[sub] }) },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    ttl: { AccessToken: 60, IdToken: 60, RefreshToken: 3600, Grant: 3600, Session: 1, Interaction: 600 },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, it) => `/interaction/${it.uid}` },
    renderError: (ctx, out) => { ctx.type = 'text'; ctx.body = JSON.stringify(out) },
  })
  // Ferry listens on any port.
  provider.Client.prototype.redirectUriAllowed = (uri) => uri.startsWith('http://127.0.0.1:')
  answer = provider.callback()
}

async function interaction(request, response) {
  const details = await provider.interactionDetails(request, response)
  const { prompt, params, grantId, session } = details
  if (state.who === 'deny') return provider.interactionFinished(request, response, { error: 'access_denied' })
  if (prompt.name === 'login') {
    if (state.nonce) {
      details.params.nonce = state.nonce
      await details.save(600)
    }
    return provider.interactionFinished(request, response, { login: { accountId: state.who } })
  }
  const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
  grant.addOIDCScope('openid email groups offline_access')
  const id = await grant.save()
  grants.set(id, grant)
  return provider.interactionFinished(request, response, { consent: { grantId: id } }, { mergeWithLastSubmission: true })
}

// The same ID token, from an earlier time.
function aged(token) {
  const [head, claims] = token.split('.').map((part) => (part ? Buffer.from(part, 'base64url').toString() : ''))
  const told = JSON.parse(claims)
  const encoded = (text) => Buffer.from(text).toString('base64url')
  const text = `${encoded(head)}.${encoded(JSON.stringify({ ...told, iat: told.iat - state.age, exp: told.exp - state.age }))}`
  const key = createPrivateKey({ key: state.keys[0], format: 'jwk' })
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`
}

async function body(request) {
  let text = ''
  for await (const piece of request) text += piece
  return text
}

// Lets the answer of the token endpoint through, or with the ID token that another client was given.
function swapped(response) {
  const pieces = []
  const { end } = response
  response.write = (piece) => (pieces.push(Buffer.from(piece)), true)
  response.end = (piece) => {
    if (piece) pieces.push(Buffer.from(piece))
    let text = Buffer.concat(pieces).toString()
    try {
      const told = JSON.parse(text)
      if (told.id_token) {
        if (state.swap && state.foreign) {
          told.id_token = state.foreign
          state.swap = false
        } else {
          const claims = JSON.parse(Buffer.from(told.id_token.split('.')[1], 'base64url'))
          if (claims.aud === 'other') state.foreign = told.id_token
          if (state.age) told.id_token = aged(told.id_token)
        }
        text = JSON.stringify(told)
      }
    } catch { /* not an answer with tokens */ }
    response.setHeader('content-length', Buffer.byteLength(text))
    return end.call(response, text)
  }
}

async function admin(path, request) {
  const [what, value] = path.split('/')
  if (what === 'as') state.who = value
  else if (what === 'users') users[value] = { ...users[value], ...JSON.parse(await body(request)) }
  else if (what === 'age') state.age = Number(value)
  else if (what === 'nonce') state.nonce = value || null
  else if (what === 'audience') state.swap = true
  else if (what === 'revoke') for (const grant of grants.values()) await grant.destroy()
  else if (what === 'rotate') {
    state.keys = [signingKey()]
    start()
  } else return 'unknown'
  return 'ok'
}

const server = http.createServer(async (request, response) => {
  try {
    if (request.url.startsWith('/admin/')) return response.end(await admin(request.url.slice('/admin/'.length), request))
    if (request.url.startsWith('/interaction/')) return await interaction(request, response)
    if (request.url.startsWith('/token')) swapped(response)
    return answer(request, response)
  } catch (error) {
    response.statusCode = 500
    response.end(String(error))
  }
})
server.listen(0, '127.0.0.1', () => {
  issuer = `http://127.0.0.1:${server.address().port}`
  start()
  console.log(issuer)
})
