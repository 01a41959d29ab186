//! Plans builds: which components of a config must be made, and how they ended. What each is made of: `recipes`.

use config::Component;
use model::build::{Artifact, BuildOutputs, BuildSpec, BuiltFrom, KnownBuild, Recipe, Repository, Secrets, SyncSpec};
use model::spec::{SECRET_BYTES_MIN, Work};
use model::time::parse_duration;
use model::{AppId, BuildId, ComponentId, ConfigId, Digest, JobState, OrgId};
use serde_json::Value;
use store::{Build, BuildEnd, BuildStatus, Config, EntityKind, Runner, Section, StoreError};

use crate::error::{BuildError, Error, Result};
use crate::jobs::Draft;
use crate::reconcile::go_on;
use crate::registry::recipes::{Need, Subject, address, image_policies, reference, with_credentials};
use crate::{By, Conductor};

/// How a build differs from what the config says.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Another branch, tag, commit or version.
    pub reference: Option<String>,
    /// Even where the source has not moved.
    pub anew: bool,
    pub idempotency: Option<store::Idempotency>,
}

impl Conductor {
    /// The org's build runner.
    pub async fn build_runner(&self, org: &OrgId) -> Result<Runner> {
        let id = self.store.org(org).await?.build_runner_id;
        Ok(self.store.runner(org, id.as_str()).await?)
    }

    /// Where the artifacts of a component are kept.
    pub fn repository(&self, org: &OrgId, app: &AppId, component_id: &str) -> Repository {
        let name = format!("{org}/{app}/{component_id}");
        match &self.registry {
            None => Repository { registry: None, name, plain_http: false },
            Some(other) if other.name.is_empty() => Repository { name, ..other.clone() },
            Some(other) => Repository { name: format!("{}/{name}", other.name), ..other.clone() },
        }
    }

    /// Builds what a config needs: what was built before of the same recipe stands, unless its source may have moved.
    /// Returns one build for each component, in the config's order.
    pub async fn plan_builds(&self, org: &OrgId, config: &Config, actor: &str) -> Result<Vec<Build>> {
        let subjects = self.subjects(org, config).await?;
        let runner = self.build_runner(org).await?;
        let mut builds = Vec::with_capacity(subjects.len());
        for subject in subjects {
            builds.push(Box::pin(self.build(org, &runner, &subject, &Asked::default(), actor)).await?);
        }
        self.store.mark_planned(&config.id, self.now()).await?;
        Ok(builds)
    }

    /// Builds what a version of an app needs and was not built yet.
    pub async fn build_config(&self, by: &By, config: &Config) -> Result<Vec<Build>> {
        if config.version.is_none() {
            return Err(BuildError::Draft.into());
        }
        self.plan_builds(&by.org, config, by.actor()).await
    }

    /// Cancels a build that has not ended.
    pub async fn cancel_build(&self, by: &By, build: Build) -> Result<Build> {
        let build = self.settled(build).await?;
        match (build.status, &build.job_id) {
            (BuildStatus::Open, Some(job)) => {
                self.store.cancel(&by.org, job, by.actor(), self.now()).await?;
            }
            (BuildStatus::Open, None) | (_, _) => return Err(BuildError::Ended.into()),
        }
        Ok(self.store.build(&by.org, &build.id).await?)
    }

    /// Builds one component as the active config has it: from another branch, tag or commit where one is named.
    pub async fn build_component(
        &self,
        org: &OrgId,
        app: &AppId,
        component_id: &str,
        asked: Asked,
        actor: &str,
    ) -> Result<Build> {
        let bad = |r: &&str| r.starts_with('-') || r.contains(char::is_whitespace) || r.len() > 255;
        if let Some(bad) = asked.reference.as_deref().filter(bad) {
            return Err(BuildError::Reference(bad.to_owned()).into());
        }
        let config = self.store.active_config(org, app).await?;
        let config = config.ok_or(BuildError::NeverSynced)?;
        let subjects = self.subjects(org, &config).await?;
        let subject = subjects.into_iter().find(|s| s.component_id == component_id).ok_or(BuildError::NotInConfig)?;
        let component = &subject.component.common.name;
        if asked.reference.is_some() && matches!(subject.need(None)?, Need::Build(recipe) if !recipe.may_move()) {
            return Err(BuildError::NothingToChoose(component.clone()).into());
        }
        let runner = self.build_runner(org).await?;
        Box::pin(self.build(org, &runner, &subject, &asked, actor)).await
    }

    async fn subjects(&self, org: &OrgId, config: &Config) -> Result<Vec<Subject>> {
        let sections = self.store.sections(org, &config.id).await?;
        let (app, local_sources) = crate::apps::assemble(sections.iter().map(|s| &s.body))?;
        let kind = EntityKind::Component.section();
        let of = |section: &Section| {
            let damaged = |why: &'static str| BuildError::Damaged { component: section.name.clone(), why };
            let found = section.body.get(kind).and_then(|all| all.get(0)).ok_or_else(|| damaged("it says nothing"))?;
            let component: Component = serde_json::from_value(found.clone())
                .map_err(|_| damaged("it is not what this version of Ferry expects"))?;
            Ok(Subject {
                app_id: config.app_id.clone(),
                component_id: section.entity_id.clone().ok_or_else(|| damaged("it has no id"))?,
                section_id: section.id.clone(),
                config_version: config.version.unwrap_or_default(),
                policies: image_policies(&app, &component),
                component,
                local_sources: local_sources.clone(),
            })
        };
        sections.iter().filter(|s| s.kind == kind).map(of).collect()
    }

    async fn build(
        &self,
        org: &OrgId,
        runner: &Runner,
        subject: &Subject,
        asked: &Asked,
        actor: &str,
    ) -> Result<Build> {
        let recipe = match subject.need(asked.reference.as_deref()).and_then(|need| self.allowed(org, need)) {
            Ok(Need::Build(recipe)) => *recipe,
            Ok(Need::Nothing) => {
                return self.without_job(org, subject, BuildStatus::Active, "nothing to build", actor).await;
            }
            Ok(Need::Unsupported(why)) => return self.without_job(org, subject, BuildStatus::Error, &why, actor).await,
            Err(error) if error.is_refusal() => {
                return self.without_job(org, subject, BuildStatus::Error, &error.to_string(), actor).await;
            }
            Err(other) => return Err(other),
        };
        let key = subject.key(&recipe);
        let component = &subject.component_id;
        if let Some(open) = self.store.build_of_recipe(org, component, &key, true).await? {
            let open = self.settled(open).await?;
            if open.status == BuildStatus::Open && asked.anew {
                return Err(BuildError::Open(open.id).into());
            }
            if open.status == BuildStatus::Open {
                return Ok(open);
            }
        }
        let good = self.good_build(org, component, &key).await?;
        if let Some(good) = &good
            && !recipe.may_move()
            && !asked.anew
        {
            return self.again(org, subject, good, actor).await;
        }
        let known = good.filter(|_| !asked.anew);
        match self.enqueue_build(org, runner, subject, recipe, key, known, asked, actor).await {
            Err(error) if error.is_refusal() && asked.idempotency.is_none() => {
                let why = format!("{error}; then `ferry builds create {}`", subject.component.common.name);
                self.without_job(org, subject, BuildStatus::Error, &why, actor).await
            }
            done => done,
        }
    }

    /// An image of another org, in the registry that all share, is nobody's to copy.
    fn allowed(&self, org: &OrgId, need: Need) -> Result<Need> {
        if let (Need::Build(recipe), Some(Repository { registry: Some(host), name, .. })) = (&need, &self.registry)
            && let Recipe::ContainerImage { image, .. } = recipe.as_ref()
        {
            let shared = if name.is_empty() { format!("{host}/") } else { format!("{host}/{name}/") };
            if image.starts_with(&shared) && !image.starts_with(&format!("{shared}{org}/")) {
                return Err(BuildError::OtherOrg(image.clone()).into());
            }
        }
        Ok(need)
    }

    /// The newest good build of a recipe whose artifact is still there.
    async fn good_build(&self, org: &OrgId, component: &str, recipe: &str) -> Result<Option<Build>> {
        let Some(good) = self.store.build_of_recipe(org, component, recipe, false).await? else { return Ok(None) };
        let repository = self.repository(org, &good.app_id, component);
        let there = match &good.artifact {
            Some(artifact) if repository.registry.is_none() => {
                self.store.registry_manifest(org, &repository.name, &artifact.digest).await?.is_some()
            }
            Some(_) | None => true,
        };
        Ok(there.then_some(good))
    }

    /// A good build stands again, after another one: that is written down, so that the newest one is what the config says.
    async fn again(&self, org: &OrgId, subject: &Subject, good: &Build, actor: &str) -> Result<Build> {
        let filter = store::BuildFilter { app: None, component: Some(subject.component_id.clone()) };
        let newest = self.store.builds(org, filter, 0, 1).await?.pop();
        if newest.is_none_or(|newest| newest.id == good.id) {
            return Ok(good.clone());
        }
        let text = "as an earlier build: the recipe is the same";
        let build = Build {
            recipe: good.recipe.clone(),
            git_ref: good.git_ref.clone(),
            same_as: Some(good.same_as.clone().unwrap_or_else(|| good.id.clone())),
            source: good.source.clone(),
            artifact: good.artifact.clone(),
            ..self.new_build(org, subject, BuildStatus::Active, text, actor)
        };
        self.store.add_build(build.clone()).await?;
        Ok(build)
    }

    #[expect(clippy::too_many_arguments, reason = "all that a build is made of")]
    async fn enqueue_build(
        &self,
        org: &OrgId,
        runner: &Runner,
        subject: &Subject,
        mut recipe: Recipe,
        key: String,
        known: Option<Build>,
        asked: &Asked,
        actor: &str,
    ) -> Result<Build> {
        let (git_ref, timeout_s) = (reference(&recipe), recipe.job_type().facts().timeout_s);
        let timeout = subject.component.common.build_timeout.as_deref().and_then(|text| parse_duration(text).ok());
        let mut secrets = Vec::new();
        if let Some(found) = match address(&recipe) {
            Some(address) => self.store.source_credentials(org, &address, self.now()).await?,
            None => None,
        } {
            secrets.push(found.password.clone());
            with_credentials(&mut recipe, found);
        }
        if let Recipe::DockerImage { secrets: Secrets(wanted), .. } = &mut recipe
            && !wanted.is_empty()
        {
            let variables = self.store.variables(org, &subject.app_id).await?;
            for (name, value) in wanted.iter_mut() {
                let variable =
                    variables.iter().find(|v| v.name == *name).ok_or_else(|| BuildError::NoVariable(name.clone()))?;
                if variable.value.len() < SECRET_BYTES_MIN {
                    return Err(BuildError::ShortSecret(name.clone()).into());
                }
                variable.value.clone_into(value);
                secrets.push(variable.value.clone());
            }
        }
        secrets.retain(|secret| secret.len() >= SECRET_BYTES_MIN);
        let mut build = self.new_build(org, subject, BuildStatus::Open, "", actor);
        build.recipe = key;
        build.git_ref = git_ref;
        let spec = BuildSpec {
            build_id: build.id.clone(),
            component_id: ComponentId::parse(&subject.component_id)
                .map_err(|_| StoreError::corrupt("id of a component"))?,
            component: build.component.clone(),
            to: self.repository(org, &subject.app_id, &subject.component_id),
            tag: build.id.to_string(),
            recipe,
            known: known.map(|known| KnownBuild {
                build_id: known.same_as.clone().unwrap_or(known.id),
                revision: known.source.revision,
            }),
            policies: subject.policies.clone(),
        };
        let timeout_s = timeout.map_or(timeout_s, |t| t.as_secs().max(1));
        let draft = Draft {
            name: Some(format!("build {}", build.component)),
            secrets,
            build: Some(Box::new(build)),
            timeout_s,
            ..Draft::new(Work::Build(Box::new(spec)))
        };
        let job = self.submit(draft, runner, actor, asked.idempotency.clone()).await?.job;
        // The one of another request, where that was faster.
        Ok(self.store.build_of_job(org, &job.id).await?.ok_or(StoreError::NotFound("build"))?)
    }

    fn new_build(&self, org: &OrgId, subject: &Subject, status: BuildStatus, description: &str, actor: &str) -> Build {
        let now = self.now();
        Build {
            id: BuildId::new(now, self.random_u128()),
            org_id: org.clone(),
            app_id: subject.app_id.clone(),
            component_id: subject.component_id.clone(),
            component: subject.component.common.name.clone(),
            section_id: subject.section_id.clone(),
            config_version: subject.config_version,
            recipe: String::new(),
            status,
            description: description.to_owned(),
            job_id: None,
            git_ref: String::new(),
            same_as: None,
            source: BuiltFrom::default(),
            artifact: None,
            cache_hits: 0,
            cache_steps: 0,
            created_by: actor.to_owned(),
            created_at: now,
            updated_at: now,
        }
    }

    /// A build that is decided at once; said once for every section.
    async fn without_job(
        &self,
        org: &OrgId,
        subject: &Subject,
        status: BuildStatus,
        description: &str,
        actor: &str,
    ) -> Result<Build> {
        let filter = store::BuildFilter { app: None, component: Some(subject.component_id.clone()) };
        let last = self.store.builds(org, filter, 0, 1).await?.pop();
        if let Some(last) = last
            && (last.status, last.description.as_str(), &last.section_id) == (status, description, &subject.section_id)
        {
            return Ok(last);
        }
        let build = self.new_build(org, subject, status, description, actor);
        self.store.add_build(build.clone()).await?;
        Ok(build)
    }

    /// The build as it stands: one whose job has ended is written down first.
    pub async fn settled(&self, build: Build) -> Result<Build> {
        let (BuildStatus::Open, Some(job_id)) = (build.status, &build.job_id) else { return Ok(build) };
        let job = self.store.job(&build.org_id, job_id).await?;
        if !job.state.is_terminal() {
            return Ok(build);
        }
        let end = |status: BuildStatus, description: String| BuildEnd {
            status,
            description,
            same_as: None,
            source: BuiltFrom {
                reference: Some(build.git_ref.clone()).filter(|r| !r.is_empty()),
                ..BuiltFrom::default()
            },
            artifact: None,
            cache_hits: 0,
            cache_steps: 0,
        };
        let ended = match job.state {
            JobState::Finished => match self.made(&build, &job).await? {
                Ok(made) => made,
                Err(why) => end(BuildStatus::Error, why),
            },
            JobState::Cancelled => end(BuildStatus::Cancelled, said(&job.reason, "cancelled")),
            _ => end(BuildStatus::Error, said(&job.reason, job.state.as_str())),
        };
        Ok(self.store.end_build(&build, ended, self.now()).await?)
    }

    /// What a finished job has made, or why that can't be taken for a build.
    async fn made(&self, build: &Build, job: &store::Job) -> Result<std::result::Result<BuildEnd, String>> {
        let outputs = Value::Object(self.outputs(job).await?);
        let outputs: BuildOutputs = match serde_json::from_value(outputs) {
            Ok(outputs) => outputs,
            Err(error) => return Ok(Err(format!("the build runner's outputs can't be read: {error}"))),
        };
        let artifact: Option<Artifact> = match (&outputs.same_as, outputs.image) {
            (Some(known), _) => match self.store.build(&build.org_id, known).await {
                Ok(known) if known.component_id == build.component_id && known.recipe == build.recipe => known.artifact,
                Ok(_) | Err(StoreError::NotFound(_)) => {
                    return Ok(Err("the build runner names a build that is not one of this recipe".into()));
                }
                Err(other) => return Err(other.into()),
            },
            (None, image) => image,
        };
        let Some(artifact) = artifact else { return Ok(Err("the build runner has put out no artifact".into())) };
        let repository = self.repository(&build.org_id, &build.app_id, &build.component_id);
        if repository.registry.is_none()
            && self.store.registry_manifest(&build.org_id, &repository.name, &artifact.digest).await?.is_none()
        {
            return Ok(Err(format!("the registry does not have {}, the build's artifact", artifact.digest)));
        }
        Ok(Ok(BuildEnd {
            status: BuildStatus::Active,
            description: if outputs.same_as.is_some() { "the source has not moved".into() } else { String::new() },
            same_as: outputs.same_as,
            source: outputs.source,
            artifact: Some(artifact),
            cache_hits: outputs.cache_hits,
            cache_steps: outputs.cache_steps,
        }))
    }

    /// The name of a component's recipe, as a config has it; none where there is nothing to build.
    pub async fn recipe_at(&self, config: &Config, component_id: &str) -> Result<Option<String>> {
        let document = self.document(&config.org_id, &config.app_id, &config.id).await?;
        let all = document.recipes.get_or_try_init(|| async {
            let subjects = self.subjects(&config.org_id, config).await?;
            let named = subjects.into_iter().filter_map(|subject| match subject.need(None) {
                Ok(Need::Build(recipe)) => Some((subject.component_id.clone(), subject.key(&recipe))),
                Ok(Need::Nothing | Need::Unsupported(_)) | Err(_) => None,
            });
            Ok::<_, Error>(named.collect())
        });
        Ok(all.await?.get(component_id).cloned())
    }

    /// The build of a component as a config has it: the newest good one of its recipe, or the one that is open, or the last that
    /// was tried.
    pub(crate) async fn build_at(&self, config: &Config, component_id: &str) -> Result<Option<Build>> {
        let org = &config.org_id;
        let Some(key) = self.recipe_at(config, component_id).await? else { return Ok(None) };
        if let Some(open) = self.store.build_of_recipe(org, component_id, &key, true).await? {
            let open = self.settled(open).await?;
            if open.status == BuildStatus::Open {
                return Ok(Some(open));
            }
        }
        if let Some(good) = self.good_build(org, component_id, &key).await? {
            return Ok(Some(good));
        }
        let filter = store::BuildFilter { app: None, component: Some(component_id.to_owned()) };
        Ok(self.store.builds(org, filter, 0, 1).await?.pop())
    }

    /// The newest good build of a component as the active config has it: what installs get.
    pub async fn current_build(&self, org: &OrgId, app: &AppId, component_id: &str) -> Result<Build> {
        let missing = || Error::from(BuildError::NoGoodBuild);
        let config = self.store.active_config(org, app).await?.ok_or_else(missing)?;
        let subjects = self.subjects(org, &config).await?;
        let subject = subjects.into_iter().find(|s| s.component_id == component_id).ok_or_else(missing)?;
        let Need::Build(recipe) = subject.need(None)? else { return Err(missing()) };
        let key = subject.key(&recipe);
        if let Some(open) = self.store.build_of_recipe(org, component_id, &key, true).await? {
            self.settled(open).await?;
        }
        self.good_build(org, component_id, &key).await?.ok_or_else(missing)
    }

    /// Has an install's runner copy the artifact of a build, or see that it is there. The order names its digest.
    pub async fn sync_artifact(
        &self,
        install: store::Install,
        runner: &Runner,
        build: &Build,
        to: Option<Repository>,
        actor: &str,
        idem: Option<store::Idempotency>,
    ) -> Result<store::Queued> {
        let digest = build.artifact.as_ref().and_then(|artifact| Digest::parse(&artifact.digest).ok());
        let digest = digest.ok_or_else(|| BuildError::NoArtifact {
            build: build.id.clone(),
            why: said(&build.description, "not yet"),
        })?;
        let spec = self.sync_spec(build, digest, to);
        let draft = Draft {
            name: Some(format!("sync {}", build.component)),
            install: Some((install.id, install.app_id)),
            ..Draft::new(Work::OciSync(spec))
        };
        self.submit(draft, runner, actor, idem).await
    }

    /// The copy of what a build has made.
    pub(crate) fn sync_spec(&self, build: &Build, digest: Digest, to: Option<Repository>) -> SyncSpec {
        SyncSpec {
            build_id: build.id.clone(),
            component: build.component.clone(),
            from: self.repository(&build.org_id, &build.app_id, &build.component_id),
            digest,
            to,
            tag: build.same_as.clone().unwrap_or_else(|| build.id.clone()).to_string(),
        }
    }

    /// Writes down builds whose jobs have ended, and plans those of configs that nobody has planned.
    pub async fn reconcile_builds(&self) -> Result<()> {
        for build in self.store.ended_builds(256).await? {
            go_on("build", self.settled(build).await);
        }
        for (org, app, config) in self.store.unplanned_configs(256).await? {
            go_on("plan of builds", Box::pin(self.plan_config(&org, &app, &config)).await);
        }
        Ok(())
    }

    async fn plan_config(&self, org: &OrgId, app: &AppId, config: &ConfigId) -> Result<()> {
        let config = self.store.config(org, app, config).await?;
        self.plan_builds(org, &config, config.created_by.as_str()).await.map(drop)
    }
}

fn said(reason: &str, otherwise: &str) -> String {
    if reason.is_empty() { otherwise.to_owned() } else { reason.to_owned() }
}
