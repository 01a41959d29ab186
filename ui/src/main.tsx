import { createRoot } from 'react-dom/client'
import './tokens.css'
import './base.css'
createRoot(document.getElementById('root') as HTMLElement).render(null)
