/** Addresses of pages; `slug` is the org's name, or its id where two have the same name. */

const e = encodeURIComponent

export const paths = (slug: string) => {
  const org = `/o/${e(slug)}`
  const install = (id: string, part = '') => `${org}/installs/${e(id)}${part && `/${part}`}`
  const app = (id: string, part = '') => `${org}/apps/${e(id)}${part && `/${part}`}`
  return {
    fleet: org,
    approvals: `${org}/approvals`,
    workflows: `${org}/workflows`,
    run: (id: string, step?: string) => `${org}/workflows/${e(id)}${step ? `?step=${e(step)}` : ''}`,
    jobs: `${org}/jobs`,
    job: (id: string, hash = '') => `${org}/jobs/${e(id)}${hash}`,
    newInstall: (appId?: string) => `${org}/installs/new${appId ? `?app=${e(appId)}` : ''}`,
    install,
    component: (id: string, name: string) => install(id, `components/${e(name)}`),
    apps: `${org}/apps`,
    app,
    version: (id: string, config: string) => app(id, `versions/${e(config)}`),
    build: (id: string) => `${org}/builds/${e(id)}`,
    runners: `${org}/runners`,
    runner: (id: string) => `${org}/runners/${e(id)}`,
    audit: `${org}/audit`,
    settings: (part = 'members') => `${org}/settings/${part}`,
  }
}

export type Paths = ReturnType<typeof paths>
