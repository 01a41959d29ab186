/** Wire types of the dashboard's routes, by name: all of them are in the API's document. */
import type { components } from './schema'

type S = components['schemas']

/** What is absent is left out on the wire, never null. */
type Sent<T> = T extends (infer U)[] ? Sent<U>[] : T extends object ? { [K in keyof T]: Sent<Exclude<T[K], null>> } : T

export type Can = Sent<S['Can']>
export type Cans = Record<string, Can>
export type PartWord = Sent<S['PartWord']>
export type RunnerWord = Sent<S['RunnerWord']>
export type WorkflowWord = Sent<S['WorkflowWord']>
export type StepWord = Sent<S['StepWord']>
export type HealthWord = Sent<S['HealthWord']>
export type DriftWord = Sent<S['DriftWord']>
export type Fleet = Sent<S['Fleet']>
export type FleetRow = Sent<S['FleetRow']>
export type FleetComponent = Sent<S['FleetComponent']>
export type FleetFacets = Sent<S['FleetFacets']>
export type Facet = Sent<S['Facet']>
export type Attention = Sent<S['Attention']>
export type AttentionItem = Sent<S['AttentionItem']>
export type RunningWorkflow = Sent<S['RunningWorkflow']>
export type Approvals = Sent<S['Approvals']>
export type ApprovalItem = Sent<S['ApprovalItem']>
export type InstallOverview = Sent<S['InstallOverview']>
export type ComponentRow = Sent<S['ComponentRow']>
export type ChangeRow = Sent<S['ChangeRow']>
export type ComponentGraph = Sent<S['ComponentGraph']>
export type GraphNode = Sent<S['GraphNode']>
export type GraphEdge = Sent<S['GraphEdge']>
export type InstallDrift = Sent<S['InstallDrift']>
export type PartDrift = Sent<S['PartDrift']>
export type Readme = Sent<S['Readme']>
export type ReadmeBlock = Sent<S['ReadmeBlock']>
export type ReadmeItem = Sent<S['ReadmeItem']>
export type ReadmeRow = Sent<S['ReadmeRow']>
export type ReadmeCell = Sent<S['ReadmeCell']>
export type ReadmeText = Sent<S['ReadmeText']>
export type StateDiff = Sent<S['StateDiff']>
export type StateChange = Sent<S['StateChange']>
export type RunView = Sent<S['RunView']>
export type WaitingReason = Sent<S['WaitingReason']>
export type RunStep = Sent<S['RunStep']>
export type RunProgress = Sent<S['RunProgress']>
export type PlanView = Sent<S['PlanView']>
export type PolicyVerdict = Sent<S['PolicyVerdict']>
export type PlanResource = Sent<S['PlanResource']>
export type PlanAttribute = Sent<S['PlanAttribute']>
export type PlanValue = Sent<S['PlanValue']>
export type PlanHunk = Sent<S['PlanHunk']>
export type PlanOutput = Sent<S['PlanOutput']>
export type PlanDiff = Sent<S['PlanDiff']>
export type LogOutline = Sent<S['LogOutline']>
export type LogSection = Sent<S['LogSection']>
export type LogLines = Sent<S['LogLines']>
export type LogLine = Sent<S['LogLine']>
export type LogMatches = Sent<S['LogMatches']>
export type OrgFrame = Sent<S['OrgFrame']>
export type BuildRunnerState = Sent<S['BuildRunnerState']>
export type SearchResults = Sent<S['SearchResults']>
export type SearchItem = Sent<S['SearchItem']>
export type SavedView = Sent<S['SavedView']>
export type CreateSavedView = Sent<S['CreateSavedView']>
export type AuditEntry = Sent<S['AuditEntry']>
export type AuditPage = Sent<S['AuditPage']>
export type LiveNote = Sent<S['LiveNote']>
