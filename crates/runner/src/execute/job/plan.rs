//! What a deploy of a Job would do: run it, wait for it, or nothing, since it has run.

use crash::crash_point;
use kubernetes::{Change, Deployed, Entry, Inventory, ObjectRef, Verb};
use model::kubernetes::RunSpec;
use serde_json::{Value, json};

use super::super::Run;
use super::super::action::StepFailure;
use super::super::deploy::Planned;
use super::super::kubernetes::api::{Api, Apply, selector};
use super::super::kubernetes::pulls::ImagePulls;
use super::super::kubernetes::{plan, state};
use super::super::manifest::connect;
use super::super::stages::Stages;
use super::object::{self, Live, State};
use super::watch::Ran;
use super::{Act, Found, LOOK, PlanFile, Program};

const PLAN: usize = 1;

/// The Jobs of a component that are there, the last run at the end.
pub(super) async fn there(api: &Api, job: &RunSpec, before: Option<&Inventory>) -> Result<Vec<Live>, StepFailure> {
    let here = before.filter(|before| before.cluster.uid == api.cluster.uid);
    let known = here.iter().flat_map(|before| &before.objects).filter_map(|entry| entry.of.namespace.clone());
    let mut namespaces: Vec<String> = known.chain([job.namespace.clone()]).collect();
    namespaces.sort();
    namespaces.dedup();
    let query = selector(&object::selector(job.deploy.workspace_id.as_str())).unwrap_or_default();
    let mut found = Vec::new();
    for namespace in namespaces {
        let jobs = api.list("batch/v1", "jobs", &namespace, &query).await;
        let jobs = jobs.map_err(|e| e.of("list", &format!("Jobs in the namespace {namespace}")))?;
        found.extend(jobs.into_iter().filter_map(Live::read));
    }
    found.sort_by(|a, b| (a.run, &a.of).cmp(&(b.run, &b.of)));
    Ok(found)
}

pub(super) async fn make(
    program: &Program<'_>,
    run: &Run<'_>,
    stages: &mut Stages,
    destroy: bool,
) -> Result<Planned, StepFailure> {
    stages.begin(run, LOOK);
    let (_, api) = connect(run, program.cluster, &program.job.deploy).await?;
    let before = state::open(run, &program.workspace).await?;
    stages.begin(run, PLAN);
    crash_point!("executor.before_plan");
    let pulls = ImagePulls::of(run, program.pulls)?;
    let mut made = Made { program, pulls, api, ask: Vec::new(), changes: Vec::new(), objects: Vec::new() };
    let known = plan::known(&made.api, before.as_ref(), &mut made.ask);
    let live = there(&made.api, program.job, before.as_ref()).await?;
    let creates_namespace = !destroy && lacks_namespace(&made.api, &program.job.namespace).await?;
    let act = match destroy {
        true => made.teardown(before.as_ref(), known, &live).await?,
        false => {
            let deployed = before.as_ref().filter(|before| before.cluster.uid == made.api.cluster.uid);
            let deployed = deployed.map(|before| before.deployed.clone()).unwrap_or_default();
            made.deploy(deployed, &live, creates_namespace).await?
        }
    };
    crash_point!("executor.planned");
    let Made { api, ask, changes, objects, .. } = made;
    let found = live.iter().map(|it| Found { of: it.of.clone(), uid: it.uid.clone(), state: it.state }).collect();
    let file = PlanFile { cluster: api.cluster, act, found, creates_namespace };
    let asked = if destroy { &[][..] } else { &program.job.deploy.policies };
    plan::planned(run, PLAN, &json!(file), &changes, asked, objects, ask).await
}

/// A plan that is being made.
struct Made<'m> {
    program: &'m Program<'m>,
    pulls: Option<ImagePulls>,
    api: Api,
    ask: Vec<String>,
    changes: Vec<Change>,
    /// What policies judge.
    objects: Vec<Value>,
}

/// What becomes of a deploy, as far as the cluster and the state decide it.
enum Verdict<'v> {
    /// The last run is the one that is wanted, and has succeeded.
    Ran(Box<Ran>),
    /// The last run is the one that is wanted, and is not over.
    Runs(&'v Live),
    New,
}

/// Jobs tell more than the state, which is older; but one that is gone has run all the same. What ran before the last run that
/// was begun does not count: that one may have undone it, also where its Job was deleted.
fn judge<'v>(wanted: &str, ran: Option<Ran>, begun: u64, live: &'v [Live]) -> Verdict<'v> {
    let ran = ran.filter(|ran| ran.run >= begun);
    let since = ran.as_ref().map_or(begun, |ran| ran.run);
    match (live.last().filter(|last| last.run >= since), ran) {
        (Some(last), _) if last.content == wanted => match last.state {
            State::Complete => Verdict::Ran(Box::new(Ran::of(last))),
            State::Running => Verdict::Runs(last),
            State::Failed => Verdict::New,
        },
        (None, Some(ran)) if ran.content == wanted => Verdict::Ran(Box::new(ran)),
        _ => Verdict::New,
    }
}

impl Made<'_> {
    async fn deploy(&mut self, before: Deployed, live: &[Live], creates_namespace: bool) -> Result<Act, StepFailure> {
        let program = self.program;
        let ran = before.ran.and_then(|ran| serde_json::from_value(ran).ok());
        let (lineage, serial) = program.workspace.state();
        let name = object::name(program.job, lineage, serial);
        let of = object::named(&program.job.namespace, &name);
        let mut job = object::object(program.job, &name, serial, program.timeout_s);
        if let Some(pulls) = &self.pulls {
            pulls.secret.add_to(&mut job);
        }
        self.objects.push(job.clone());
        let wanted = object::content(program.job);
        let (act, kept) = match judge(&wanted, ran, before.begun.unwrap_or_default(), live) {
            Verdict::Ran(ran) => {
                if let Some(live) = live.iter().find(|it| it.uid == ran.uid) {
                    let shown = object::shown_live(&live.object);
                    self.change(&live.of, Verb::Nothing, shown.clone(), shown, None);
                }
                let uid = ran.uid.clone();
                (Act::Ran { ran }, uid)
            }
            Verdict::Runs(live) => {
                let why = "because an earlier apply has started it and it is not over: nothing is started, this apply waits for it";
                self.change(&live.of, Verb::Update, json!({ "run": "begun" }), json!({ "run": "over" }), Some(why));
                (Act::Wait { of: live.of.clone(), uid: live.uid.clone() }, live.uid.clone())
            }
            Verdict::New => {
                self.try_out(&of, &job, creates_namespace).await?;
                if creates_namespace {
                    let namespace = namespace(&program.job.namespace);
                    let why = "because the Job runs in it, and it is not there; a teardown leaves it";
                    let after = namespace_object(&namespace.name);
                    self.change(&namespace, Verb::Create, Value::Null, after, Some(why));
                }
                self.change(&of, Verb::Create, Value::Null, object::shown(&job), Some("and runs until it ends"));
                (Act::Run { of, object: Box::new(job) }, String::new())
            }
        };
        for old in live.iter().filter(|it| it.uid != kept) {
            let why = match (old.state, &act) {
                (State::Running, _) => {
                    self.ask.push(format!(
                        "{} is still running, with other content: it would be stopped",
                        old.of.address()
                    ));
                    "because it runs something else: it is stopped"
                }
                (State::Failed, _) => "because it failed",
                (State::Complete, Act::Run { .. }) => "once the new one has succeeded",
                (State::Complete, _) => "because a later one has run",
            };
            self.change(&old.of, Verb::Delete, object::shown_live(&old.object), Value::Null, Some(why));
        }
        Ok(act)
    }

    async fn teardown(
        &mut self,
        before: Option<&Inventory>,
        known: &[Entry],
        live: &[Live],
    ) -> Result<Act, StepFailure> {
        if known.is_empty() {
            // What is in a cluster that was replaced is forgotten.
            let forgotten = plan::teardown(&self.api, before, known, super::super::kubernetes::compare::By::Us).await?;
            self.changes.extend(forgotten.changes);
        }
        for job in live {
            let why = match job.state {
                State::Running => Some("though it is still running: it is stopped"),
                State::Complete | State::Failed => None,
            };
            self.change(&job.of, Verb::Delete, object::shown_live(&job.object), Value::Null, why);
        }
        Ok(Act::Teardown {})
    }

    /// Has the cluster check the Job, without keeping it.
    async fn try_out(&self, of: &ObjectRef, object: &Value, creates_namespace: bool) -> Result<(), StepFailure> {
        let address = of.address();
        let kind = self.api.kind(of).await.map_err(|e| e.of("look up the kind of", &address))?;
        let Some(kind) = kind.filter(|_| !creates_namespace) else { return Ok(()) };
        let tried = self.api.apply(of, &kind, object, Apply { dry_run: true, force: true }).await;
        tried.map(drop).map_err(|e| e.of("create", &address))
    }

    fn change(&mut self, of: &ObjectRef, verb: Verb, before: Value, after: Value, reason: Option<&str>) {
        let reason = reason.map(str::to_owned);
        self.changes.push(Change { of: of.clone(), verb, before, after, reason, fixed: Vec::new() });
    }
}

pub(super) fn namespace(name: &str) -> ObjectRef {
    ObjectRef {
        group: String::new(),
        version: "v1".into(),
        kind: "Namespace".into(),
        namespace: None,
        name: name.to_owned(),
    }
}

pub(super) fn namespace_object(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// Who may not look does without: the cluster says what it lacks.
async fn lacks_namespace(api: &Api, name: &str) -> Result<bool, StepFailure> {
    let of = namespace(name);
    match api.get(&of).await {
        Ok(live) => Ok(live.is_none()),
        Err(error) if error.code() == 403 => Ok(false),
        Err(error) => Err(error.of("read", &of.address())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(run: u64, content: &str, state: State) -> Live {
        let of = object::named("shop", &format!("it-{run}"));
        Live { of, uid: format!("uid-{run}"), content: content.into(), run, state, object: json!({}) }
    }

    fn verdict(wanted: &str, ran: Option<&Live>, live: &[Live]) -> String {
        after(wanted, ran, 0, live)
    }

    fn after(wanted: &str, ran: Option<&Live>, begun: u64, live: &[Live]) -> String {
        match judge(wanted, ran.map(Ran::of), begun, live) {
            Verdict::Ran(ran) => format!("ran {}", ran.uid),
            Verdict::Runs(live) => format!("runs {}", live.uid),
            Verdict::New => "new".into(),
        }
    }

    #[test]
    fn nothing_runs_twice_and_what_failed_runs_again() {
        use State::{Complete, Failed, Running};
        let a = live(1, "a", Complete);
        assert_eq!(verdict("a", None, &[]), "new");
        assert_eq!(verdict("a", None, &[live(0, "a", Complete)]), "ran uid-0", "nobody was told");
        assert_eq!(verdict("a", None, &[live(0, "a", Running)]), "runs uid-0");
        assert_eq!(verdict("a", None, &[live(0, "a", Failed)]), "new");
        assert_eq!(verdict("a", Some(&a), &[]), "ran uid-1", "its Job was deleted");
        assert_eq!(verdict("b", Some(&a), &[]), "new");
        assert_eq!(verdict("b", Some(&a), &[live(1, "a", Complete)]), "new");
        // The last run counts, whatever ran before it.
        assert_eq!(verdict("a", None, &[live(1, "a", Complete), live(3, "b", Failed)]), "new");
        assert_eq!(verdict("b", Some(&a), &[live(1, "a", Complete), live(3, "b", Complete)]), "ran uid-3");
        assert_eq!(verdict("a", Some(&a), &[live(0, "b", Complete)]), "ran uid-1", "left over from before");
    }

    #[test]
    fn a_rollback_runs_again_though_the_job_of_what_was_begun_since_is_gone() {
        use State::{Complete, Failed, Running};
        let a = live(1, "a", Complete);
        // `b` was begun as run 3 and given up, or cancelled: its Job was deleted, and that of `a` is still there.
        for ran in [None, Some(&a)] {
            for wanted in ["a", "b"] {
                assert_eq!(after(wanted, ran, 3, &[live(1, "a", Complete)]), "new", "{wanted} {}", ran.is_some());
                assert_eq!(after(wanted, ran, 3, &[]), "new");
            }
            assert_eq!(after("b", ran, 3, &[live(1, "a", Complete), live(3, "b", Running)]), "runs uid-3");
            assert_eq!(after("b", ran, 3, &[live(1, "a", Complete), live(3, "b", Complete)]), "ran uid-3");
            assert_eq!(after("a", ran, 3, &[live(1, "a", Complete), live(3, "b", Failed)]), "new");
        }
        // It ran again since.
        assert_eq!(after("a", Some(&live(5, "a", Complete)), 5, &[]), "ran uid-5");
    }
}
