import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiFailure } from './api/client'
import './tokens.css'
import './base.css'
import { applyTheme } from './parts/prefs'
import { router } from './router'

applyTheme()

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // Events say what is old; nothing is fetched again only because time has passed.
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (tries, error) => tries < 2 && error instanceof ApiFailure && (error.status === 0 || error.status === 503),
      retryDelay: (tries) => 500 * 2 ** tries * (0.5 + Math.random()),
    },
  },
})

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
}
