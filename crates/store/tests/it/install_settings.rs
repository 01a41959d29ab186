//! What installs say about themselves: nothing of two changes at a time is lost.

use futures::future::join_all;
use store::{Refused, StoreError};

use crate::kit::{new_org, on_both};

#[test]
fn changes_at_a_time_are_all_kept() {
    on_both(|world| async move {
        let (s, now) = (&world.store, world.now());
        let changes = (0..8).map(|n| {
            s.change_install(&world.org, &world.install, "ann", now, move |install| {
                install.settings.labels.insert(format!("k{n}"), "v".into());
                Ok(())
            })
        });
        for changed in join_all(changes).await {
            changed?;
        }
        let install = s.install(&world.org, world.install.as_str()).await?;
        assert_eq!(install.settings.labels.len(), 8);

        let refused = s.change_install(&world.org, &world.install, "ann", now, |install| {
            install.settings.labels.clear();
            Err(Refused::Labels("no".into()).into())
        });
        assert!(matches!(refused.await, Err(StoreError::Refused(_))));
        assert_eq!(s.install(&world.org, world.install.as_str()).await?.settings, install.settings);
        let later = now.plus_s(5);
        let same = s.change_install(&world.org, &world.install, "ann", later, |_| Ok(())).await?;
        assert_eq!(same.updated_at, now, "what changes nothing writes nothing");

        // A name is changed with all that shows it, and only where it is free.
        let named = |name: &'static str| {
            s.change_install(&world.org, &world.install, "ann", later, move |install| {
                install.name = name.to_owned();
                Ok(())
            })
        };
        let renamed = named("berta").await?;
        assert_eq!(s.runner(&world.org, renamed.runner_id.as_str()).await?.name, "berta");
        assert_eq!(s.install(&world.org, "berta").await?.id, world.install);
        assert_eq!(named("berta").await?.name, "berta", "the same name again is no conflict");

        let other = new_org(s, &world.account, "other", now).await?;
        let foreign = s.change_install(&other, &world.install, "eve", now, |_| Ok(())).await;
        assert!(matches!(foreign, Err(StoreError::NotFound("install"))));
        Ok(())
    });
}
