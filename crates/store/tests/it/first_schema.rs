//! A database that was written by the first schema, with its jobs, events and logs, opens in this version and goes on.

use anyhow::Result;
use model::log::{Body, Pipe};
use model::{JobState, OrgId};
use rusqlite::Connection;
use store::{JobFilter, Store};
use testkit::{Backend, FreshDatabase, on_both};

use crate::kit::{connect, open_with};

const SQLITE_MAIN: &str = include_str!("../fixtures/first/sqlite_ferry.sql");
const SQLITE_LOGS: &str = include_str!("../fixtures/first/sqlite_logs.sql");
const POSTGRES: &str = include_str!("../fixtures/first/postgres.sql");

/// Fills an empty place with the databases as they were, and opens them.
async fn upgraded(place: &FreshDatabase) -> Result<Store> {
    let key = match place.backend {
        Backend::Sqlite => {
            let dir = place.dir.path().join("db");
            fs_err::create_dir_all(&dir)?;
            Connection::open(dir.join("ferry.db"))?.execute_batch(SQLITE_MAIN)?;
            Connection::open(dir.join("logs.db"))?.execute_batch(SQLITE_LOGS)?;
            include_str!("../fixtures/first/sqlite.key")
        }
        Backend::Postgres => {
            connect(place).await?.batch_execute(POSTGRES).await?;
            include_str!("../fixtures/first/postgres.key")
        }
    };
    Ok(open_with(place, key).await?)
}

#[test]
fn a_database_of_the_first_schema_goes_on() {
    on_both(|place| async move {
        let store = upgraded(&place).await?;
        let org = only_org(&place).await?;
        let jobs = store.jobs(&org, JobFilter::default(), 0, 100).await?;
        let states: Vec<JobState> = jobs.iter().filter(|j| j.created_by != "ferry").map(|j| j.state).collect();
        assert_eq!(states, [JobState::Queued, JobState::Failed, JobState::Finished], "newest first");
        // What was sealed can be opened, and what was logged can be read.
        let queued = &jobs.iter().find(|j| j.state == JobState::Queued).expect("it is there");
        let spec = String::from_utf8(store.spec(&org, &queued.id).await?)?;
        assert!(spec.contains("echo later"), "{spec}");
        let finished = jobs.iter().filter(|j| j.created_by != "ferry").find(|j| j.state == JobState::Finished);
        let execution = &store.executions_of(&finished.expect("it is there").id).await?[0];
        let result = store.result(&org, &execution.id).await?.expect("a result");
        assert_eq!(result.outputs["color"], "blue");
        let log = store.read_log(&execution.id, 0).await?;
        let body = log.iter().find(|c| c.pipe == Pipe::Stdout).map(|c| &c.body);
        assert_eq!(body, Some(&Body::Data(b"hello from the first schema\n".to_vec())));
        assert!(store.latest_events(&org, None, &Default::default(), 100).await?.len() > 10);
        // And once more: the second opening finds nothing to do.
        upgraded_again(&place).await
    });
}

async fn upgraded_again(place: &FreshDatabase) -> Result<()> {
    let key = match place.backend {
        Backend::Sqlite => include_str!("../fixtures/first/sqlite.key"),
        Backend::Postgres => include_str!("../fixtures/first/postgres.key"),
    };
    Ok(open_with(place, key).await?.ping().await?)
}

async fn only_org(place: &FreshDatabase) -> Result<OrgId> {
    let text = match place.backend {
        Backend::Sqlite => SQLITE_MAIN,
        Backend::Postgres => POSTGRES,
    };
    let at = text.find("'orgho").expect("an org's id");
    Ok(OrgId::parse(text[at + 1..].split('\'').next().unwrap_or_default())?)
}

/// What was deployed before there was health is observed: its runner is told that there is something to ask for.
#[test]
fn what_was_deployed_before_is_observed() {
    on_both(|place| async move {
        let store = upgraded(&place).await?;
        let runners = store.runners(&only_org(&place).await?, None, 0, 10).await?;
        let watches: Vec<_> = runners.iter().map(|it| (it.install_id.is_some(), it.watch)).collect();
        assert!(watches.contains(&(true, 1)), "{watches:?}");
        assert!(watches.iter().all(|(of_install, watch)| *watch == u64::from(*of_install)), "{watches:?}");
        Ok(())
    });
}

/// Steps that were released are never edited: a database that has them would not notice.
#[test]
fn released_steps_stay_as_they_were() {
    let steps = [
        ("sqlite/main_0001_init", "8575a13439df5e88f2e1434552e5ffed47de2baeba1219ad6e63a342df048dc3"),
        ("sqlite/logs_0001_init", "504c709dd6d7d50099edb15097a19120984f0ce67dce07c0c883b6ca31f364c5"),
        ("postgres/main_0001_init", "78af5646c285fd8a8ab9b951a87d9ed1ca3c28cedaf113bd2c3c42d9be8d133c"),
        ("postgres/logs_0001_init", "f09cdc9cefe577bc3652610cfbeb9d94818cb5027f8d52b55b4fae9e22d34cff"),
    ];
    for (name, digest) in steps {
        let file = format!("{}/migrations/{name}.sql", env!("CARGO_MANIFEST_DIR"));
        let found = model::Digest::of(&fs_err::read(file).expect("a step"));
        assert_eq!(found.hex(), digest, "{name}: add a new step instead");
    }
}
