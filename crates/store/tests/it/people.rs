//! Members, invites, identities and sessions.

use anyhow::Result;
use model::{AccountId, AccountSessionId, InviteId, OrgId, Role};
use store::{
    Credential, DevicePoll, Idempotency, NewDeviceLogin, NewInvite, NewSession, Refreshed, Refused, SessionKind,
    StoreError, Vouched,
};

use crate::kit::{World, new_org, on_both, unique};

fn session(world: &World, account: &AccountId, kind: SessionKind, secret: &str) -> NewSession {
    let now = world.now();
    NewSession {
        id: AccountSessionId::new(now, unique()),
        account_id: account.clone(),
        kind,
        secret: secret.into(),
        refresh: (kind == SessionKind::Cli).then(|| format!("{secret}_refresh")),
        name: "a browser".into(),
        address: "127.0.0.1".into(),
        provider: String::new(),
        token_id: None,
        access_until: now.plus_s(3600),
        idle_s: 600,
        expires_at: now.plus_s(7200),
    }
}

fn vouched(world: &World, issuer: &str, subject: &str, email: &str, roles: &[(OrgId, Role)]) -> Vouched {
    Vouched {
        provider: "idp".into(),
        issuer: issuer.into(),
        subject: subject.into(),
        email: email.into(),
        roles: roles.to_vec(),
        refresh: Some(format!("refresh of {subject}")),
        groups_due_at: Some(world.now().plus_s(60)),
    }
}

async fn sign_in(world: &World, who: Vouched) -> Result<AccountId> {
    Ok(world.store.sign_in_as(who, AccountId::new(world.now(), unique()), world.now()).await?)
}

fn invite(world: &World, email: &str, role: Role, secret: &str) -> NewInvite {
    NewInvite {
        id: InviteId::new(world.now(), unique()),
        org_id: world.org.clone(),
        email: email.into(),
        role,
        secret: secret.into(),
        created_by: world.account.clone(),
        expires_at: world.now().plus_s(600),
    }
}

async fn role_of(world: &World, account: &AccountId) -> Result<Option<Role>> {
    let all = world.store.members(&world.org).await?;
    Ok(all.into_iter().find(|member| member.account_id == *account).map(|member| member.role))
}

#[test]
fn a_session_ends_by_its_limits_and_by_hand() {
    on_both(|world| async move {
        let (s, kind) = (&world.store, SessionKind::Browser);
        let one = session(&world, &world.account, kind, "frs_one");
        s.begin_session(one.clone(), world.now()).await?;
        let who = s.authenticate_session(kind, "frs_one", world.now()).await?;
        assert_eq!((who.by.clone(), who.role_in(&world.org)), (Credential::Session(one.id.clone()), Some(Role::Admin)));
        // The secret of one kind opens nothing of another.
        assert!(s.authenticate_session(SessionKind::Cli, "frs_one", world.now()).await.is_err());
        assert!(s.authenticate("frs_one", world.now()).await.is_err());
        // Used, it goes on; unused, it is over.
        world.clock.advance_s(500);
        s.touch_sessions(vec![(one.id.clone(), world.now())]).await?;
        world.clock.advance_s(500);
        s.authenticate_session(kind, "frs_one", world.now()).await?;
        world.clock.advance_s(101);
        assert!(s.authenticate_session(kind, "frs_one", world.now()).await.is_err(), "idle");
        let two = session(&world, &world.account, kind, "frs_two");
        s.begin_session(two.clone(), world.now()).await?;
        let other = AccountId::new(world.now(), unique());
        assert_eq!(s.end_account_sessions(&other, Some(&two.id), None, "no", world.now()).await?, 0, "somebody else's");
        assert_eq!(s.end_account_sessions(&world.account, Some(&two.id), None, "done", world.now()).await?, 1);
        assert!(s.authenticate_session(kind, "frs_two", world.now()).await.is_err());
        assert!(!s.credential_is_good(&Credential::Session(two.id), &world.org, world.now()).await?);
        Ok(())
    });
}

#[test]
fn a_session_for_a_token_ends_with_it_and_reaches_as_far() {
    on_both(|world| async move {
        let s = &world.store;
        let new = store::NewToken {
            id: model::TokenId::new(world.now(), unique()),
            account_id: world.account.clone(),
            org_id: Some(world.org.clone()),
            role: Role::ReadOnly,
            name: "t".into(),
            token: "fry_t".into(),
            expires_at: None,
            runner_id: None,
        };
        s.create_token(&world.org, new.clone(), None, world.now()).await?;
        let other = new_org(s, &world.account, "other", world.now()).await?;
        let traded = NewSession {
            token_id: Some(new.id.clone()),
            ..session(&world, &world.account, SessionKind::Browser, "frs_t")
        };
        s.begin_session(traded, world.now()).await?;
        let who = s.authenticate_session(SessionKind::Browser, "frs_t", world.now()).await?;
        assert_eq!((who.role_in(&world.org), who.role_in(&other)), (Some(Role::ReadOnly), None));
        s.revoke_token(&world.org, &new.id, &world.account, (false, true), world.now()).await?;
        assert!(s.authenticate_session(SessionKind::Browser, "frs_t", world.now()).await.is_err());
        Ok(())
    });
}

#[test]
fn a_refresh_token_is_good_once_and_a_thief_ends_the_session() {
    on_both(|world| async move {
        let (s, cli) = (&world.store, SessionKind::Cli);
        let one = session(&world, &world.account, cli, "fra_1");
        s.begin_session(one.clone(), world.now()).await?;
        let refresh = async |old: &str, access: &str, next: &str| {
            s.refresh_session(&one.id, old, (access, next), 3600, world.now()).await
        };
        assert!(matches!(refresh("fra_1_refresh", "fra_2", "frr_2").await?, Refreshed::Renewed(_)));
        assert!(s.authenticate_session(cli, "fra_1", world.now()).await.is_err());
        s.authenticate_session(cli, "fra_2", world.now()).await?;
        // The answer was lost: the same again, at once.
        assert!(matches!(refresh("fra_1_refresh", "fra_3", "frr_3").await?, Refreshed::Renewed(_)));
        s.authenticate_session(cli, "fra_3", world.now()).await?;
        // Later it is somebody who has copied it, however often it was renewed since.
        world.clock.advance_s(120);
        assert!(matches!(refresh("frr_3", "fra_4", "frr_4").await?, Refreshed::Renewed(_)));
        assert!(matches!(refresh("frr_4", "fra_5", "frr_5").await?, Refreshed::Renewed(_)));
        assert!(matches!(refresh("frr_3", "fra_6", "frr_6").await?, Refreshed::Reused));
        assert!(s.authenticate_session(cli, "fra_5", world.now()).await.is_err());
        assert!(matches!(refresh("frr_5", "fra_7", "frr_7").await?, Refreshed::Unknown));
        Ok(())
    });
}

#[test]
fn an_address_alone_links_nobody_and_groups_give_and_take() {
    on_both(|world| async move {
        let s = &world.store;
        let roles = [(world.org.clone(), Role::Operator)];
        let ann = sign_in(&world, vouched(&world, "https://one", "1", "ann@example.com", &roles)).await?;
        let same = sign_in(&world, vouched(&world, "https://one", "1", "ann@new.example", &roles)).await?;
        let other = sign_in(&world, vouched(&world, "https://two", "1", "ann@new.example", &[])).await?;
        assert_eq!((ann == same, ann == other), (true, false));
        assert_eq!(role_of(&world, &ann).await?, Some(Role::Operator));
        assert_eq!(role_of(&world, &other).await?, None);
        // A role by hand is apart from that of the groups; the higher one counts.
        s.create_invite(invite(&world, "ann@new.example", Role::ReadOnly, "fri_1"), None, world.now()).await?;
        s.accept_invite("fri_1", &ann, world.now()).await?;
        assert_eq!(role_of(&world, &ann).await?, Some(Role::Operator));
        // The groups are due while somebody is signed in.
        world.clock.advance_s(61);
        assert!(s.take_due_groups(world.now().plus_s(300), 10, world.now()).await?.is_empty(), "nobody is signed in");
        let of_idp = NewSession { provider: "idp".into(), ..session(&world, &ann, SessionKind::Browser, "frs_a") };
        s.begin_session(of_idp, world.now()).await?;
        let due = s.take_due_groups(world.now().plus_s(300), 10, world.now()).await?;
        assert_eq!(due.iter().map(|one| one.refresh.as_deref()).collect::<Vec<_>>(), [Some("refresh of 1")]);
        assert!(s.take_due_groups(world.now().plus_s(300), 10, world.now()).await?.is_empty(), "somebody has taken it");
        let kept = Some(("next", world.now().plus_s(60)));
        assert!(s.groups_read(&due[0], Vec::new(), kept, world.now()).await?);
        assert_eq!(role_of(&world, &ann).await?, Some(Role::ReadOnly));
        assert!(
            !s.groups_read(&due[0], roles.to_vec(), kept, world.now()).await?,
            "an answer that is older says nothing"
        );
        // Who can't be asked is due once, signed in or not: the roles go, and the sessions.
        let who = Vouched { refresh: None, ..vouched(&world, "https://one", "1", "ann@new.example", &roles) };
        sign_in(&world, who).await?;
        world.clock.advance_s(61);
        let due = s.take_due_groups(world.now().plus_s(300), 10, world.now()).await?;
        assert_eq!(due.iter().map(|one| one.refresh.as_deref()).collect::<Vec<_>>(), [None]);
        assert!(s.groups_read(&due[0], Vec::new(), None, world.now()).await?);
        assert_eq!(role_of(&world, &ann).await?, Some(Role::ReadOnly));
        assert!(s.authenticate_session(SessionKind::Browser, "frs_a", world.now()).await.is_err());
        // And what a provider gave goes when it is not configured any more.
        sign_in(&world, vouched(&world, "https://one", "1", "ann@new.example", &roles)).await?;
        s.forget_other_providers(vec!["idp".into()], vec!["idp".into()], world.now()).await?;
        assert_eq!(role_of(&world, &ann).await?, Some(Role::Operator));
        s.forget_other_providers(vec!["idp".into()], Vec::new(), world.now()).await?;
        assert_eq!(role_of(&world, &ann).await?, Some(Role::ReadOnly));
        let dump = world.dump().await?;
        assert!(!String::from_utf8_lossy(&dump).contains("refresh of 1"), "refresh tokens are sealed");
        Ok(())
    });
}

#[test]
fn the_last_admin_stays_and_a_removed_member_is_out_everywhere() {
    on_both(|world| async move {
        let s = &world.store;
        let refused = |result: Result<(), StoreError>| matches!(result, Err(StoreError::Refused(Refused::LastAdmin)));
        let set = async |account: &AccountId, role| {
            s.set_member_role(&world.org, account, role, &world.account, world.now()).await
        };
        assert!(refused(set(&world.account, Role::Operator).await));
        assert!(refused(s.remove_member(&world.org, &world.account, &world.account, world.now()).await.map(drop)));
        let bob = sign_in(&world, vouched(&world, "https://one", "2", "bob@example.com", &[])).await?;
        s.create_invite(invite(&world, "bob@example.com", Role::Admin, "fri_b"), None, world.now()).await?;
        s.accept_invite("fri_b", &bob, world.now()).await?;
        assert!(
            matches!(s.accept_invite("fri_b", &bob, world.now()).await, Err(StoreError::NotFound("invite"))),
            "once"
        );
        set(&world.account, Role::Approver).await?;
        assert!(refused(set(&bob, Role::Approver).await), "now bob is the last one");
        set(&world.account, Role::Admin).await?;
        // Bob has a browser, and a token for the org.
        s.begin_session(session(&world, &bob, SessionKind::Browser, "frs_b"), world.now()).await?;
        let token = store::NewToken {
            id: model::TokenId::new(world.now(), unique()),
            account_id: bob.clone(),
            org_id: Some(world.org.clone()),
            role: Role::Admin,
            name: "bobs".into(),
            token: "fry_bob".into(),
            expires_at: None,
            runner_id: None,
        };
        s.create_token(&world.org, token, None, world.now()).await?;
        let way_back =
            NewInvite { created_by: bob.clone(), ..invite(&world, "bob2@example.com", Role::Admin, "fri_back") };
        s.create_invite(way_back, None, world.now()).await?;
        s.create_invite(invite(&world, "bob@example.com", Role::Admin, "fri_again"), None, world.now()).await?;
        s.remove_member(&world.org, &bob, &world.account, world.now()).await?;
        assert!(s.authenticate_session(SessionKind::Browser, "frs_b", world.now()).await.is_err());
        assert!(s.authenticate("fry_bob", world.now()).await.is_err());
        for link in ["fri_back", "fri_again"] {
            assert!(s.invite_of_link(link, world.now()).await.is_err(), "{link}");
        }
        assert_eq!(role_of(&world, &bob).await?, None);
        let stranger = new_org(s, &world.account, "elsewhere", world.now()).await?;
        assert!(matches!(
            s.remove_member(&stranger, &bob, &world.account, world.now()).await,
            Err(StoreError::NotFound("member"))
        ));
        Ok(())
    });
}

#[test]
fn invites_end_and_are_seen_by_their_org_only() {
    on_both(|world| async move {
        let s = &world.store;
        let (one, two) =
            (invite(&world, "c@d", Role::Operator, "fri_1"), invite(&world, "c@d", Role::ReadOnly, "fri_2"));
        s.create_invite(one, None, world.now()).await?;
        s.create_invite(two.clone(), None, world.now()).await?;
        assert!(s.invite_of_link("fri_1", world.now()).await.is_err(), "the second one took its place");
        assert_eq!(s.invite_of_link("fri_2", world.now()).await?.0.role, Role::ReadOnly);
        let other = new_org(s, &world.account, "other", world.now()).await?;
        assert!(s.revoke_invite(&other, &two.id, &world.account, world.now()).await.is_err());
        assert!(s.invites(&other, 0, 10).await?.is_empty());
        s.revoke_invite(&world.org, &two.id, &world.account, world.now()).await?;
        assert!(s.invite_of_link("fri_2", world.now()).await.is_err());
        s.create_invite(invite(&world, "e@f", Role::Approver, "fri_3"), None, world.now()).await?;
        world.clock.advance_s(601);
        assert!(s.invite_of_link("fri_3", world.now()).await.is_err(), "expired");
        Ok(())
    });
}

#[test]
fn a_repeated_invite_is_the_same_one_and_there_are_so_many_a_day() {
    on_both(|world| async move {
        let s = &world.store;
        let key = |key: &str, said: &str| {
            let request_digest = model::Digest::of(said.as_bytes());
            Some(Idempotency { scope: world.account.clone(), key: key.into(), request_digest })
        };
        let ask = async |email: &str, idem: Option<Idempotency>| {
            let secret = match &idem {
                Some(idem) => s.secret_of_request(idem)?,
                None => format!("fri_{}", unique()),
            };
            s.create_invite(invite(&world, email, Role::Operator, &secret), idem, world.now())
                .await
                .map(|(it, again)| (it.id, again, secret))
        };
        let (first, again, secret) = ask("a@b", key("k", "x")).await?;
        assert!(!again);
        assert_eq!(ask("a@b", key("k", "x")).await?, (first.clone(), true, secret.clone()));
        assert_eq!(s.invite_of_link(&secret, world.now()).await?.0.id, first, "its link is good still");
        assert!(matches!(ask("a@b", key("k", "y")).await, Err(StoreError::IdempotencyMismatch)));
        assert_ne!(s.secret_of_request(&key("k2", "x").unwrap())?, secret);
        for _ in 0..4 {
            ask("a@b", None).await?;
        }
        assert!(matches!(ask("a@b", None).await, Err(StoreError::Refused(Refused::InvitesOfAddress(5)))));
        for n in 0..495 {
            ask(&format!("a{n}@b"), None).await?;
        }
        assert!(matches!(ask("other@b", None).await, Err(StoreError::Refused(Refused::InvitesADay(500)))));
        assert!(ask("a@b", key("k", "x")).await?.1, "what was made is told all the same");
        world.clock.advance_s(86_401);
        ask("a@b", None).await?;
        Ok(())
    });
}

#[test]
fn a_link_signs_one_browser_in_once() {
    on_both(|world| async move {
        let s = &world.store;
        s.create_sign_in_link("frl_1", Some(&world.account), None, world.now().plus_s(60), world.now()).await?;
        let new = || session(&world, &AccountId::new(world.now(), unique()), SessionKind::Browser, "frs_l");
        assert!(!s.sign_in_link("frl_1", world.now()).await?, "not for the first account");
        assert_eq!(s.use_sign_in_link("frl_1", "x@y", new(), world.now()).await?, world.account);
        assert!(s.use_sign_in_link("frl_1", "x@y", new(), world.now()).await.is_err());
        // A link of a session reaches as far as it, and is over with it; signing out everywhere ends all links.
        let of = session(&world, &world.account, SessionKind::Browser, "frs_of");
        s.begin_session(of.clone(), world.now()).await?;
        for link in ["frl_3", "frl_4"] {
            s.create_sign_in_link(link, Some(&world.account), Some(&of.id), world.now().plus_s(60), world.now())
                .await?;
        }
        s.end_account_sessions(&world.account, Some(&of.id), None, "out", world.now()).await?;
        assert!(s.use_sign_in_link("frl_3", "x@y", new(), world.now()).await.is_err(), "its session is over");
        s.create_sign_in_link("frl_5", Some(&world.account), None, world.now().plus_s(60), world.now()).await?;
        s.end_account_sessions(&world.account, None, None, "everywhere", world.now()).await?;
        assert!(s.use_sign_in_link("frl_5", "x@y", new(), world.now()).await.is_err());
        // There is an account already, so nobody becomes the first one.
        s.create_sign_in_link("frl_2", None, None, world.now().plus_s(60), world.now()).await?;
        let late = s.use_sign_in_link("frl_2", "x@y", new(), world.now()).await;
        assert!(matches!(late, Err(StoreError::Refused(Refused::NotTheFirst))), "{late:?}");
        Ok(())
    });
}

#[test]
fn a_cli_is_let_in_once_by_its_code() {
    on_both(|world| async move {
        let s = &world.store;
        let of = session(&world, &world.account, SessionKind::Browser, "frs_d");
        s.begin_session(of.clone(), world.now()).await?;
        let new = |secret: &str, code: &str| NewDeviceLogin {
            secret: secret.into(),
            user_code: Some(code.into()),
            challenge: None,
            host: "laptop".into(),
            address: "127.0.0.1".into(),
            expires_at: world.now().plus_s(60),
            interval_s: 3,
            account_id: None,
            session_id: None,
        };
        s.begin_device_login(new("frd_1", "AAAA"), 2, world.now()).await?;
        s.begin_device_login(new("frd_2", "BBBB"), 2, world.now()).await?;
        let third = s.begin_device_login(new("frd_3", "CCCC"), 2, world.now()).await;
        assert!(matches!(third, Err(StoreError::Refused(Refused::TooManyDevices(2)))));
        assert!(matches!(s.poll_device_login("frd_1", world.now()).await?, DevicePoll::Pending));
        assert!(matches!(s.poll_device_login("frd_1", world.now()).await?, DevicePoll::SlowDown(8)));
        s.answer_device_login("AAAA", &world.account, &of.id, true, world.now()).await?;
        assert!(s.answer_device_login("AAAA", &world.account, &of.id, false, world.now()).await.is_err(), "answered");
        let DevicePoll::Approved(login) = s.poll_device_login("frd_1", world.now()).await? else { panic!("no") };
        assert_eq!(login.account_id, Some(world.account.clone()));
        assert!(matches!(s.poll_device_login("frd_1", world.now()).await?, DevicePoll::Expired), "told once");
        s.answer_device_login("BBBB", &world.account, &of.id, false, world.now()).await?;
        assert!(matches!(s.poll_device_login("frd_2", world.now()).await?, DevicePoll::Denied));
        assert!(matches!(s.poll_device_login("frd_9", world.now()).await?, DevicePoll::Expired));
        world.clock.advance_s(61);
        assert!(s.device_login("BBBB", world.now()).await.is_err());
        Ok(())
    });
}
