//! The people of an org, and invites.

use api::client::Client;
use api::control::{CreateOrgInvite, OrgInvite, OrgMember, UpdateMember};
use model::Role;

use crate::args::{Members, Yes};
use crate::commands::{confirm, ids, suggestion};
use crate::error::{CliError, Exit, Result};
use crate::output::{Output, cell, dim, id, status, strong};

pub(crate) async fn run(client: &Client, out: &Output, command: Members) -> Result<u8> {
    match command {
        Members::List => {
            let members = client.members().await?;
            let headers = ["EMAIL", "ROLE", "?GROUPS OF", "USED", "?ID"];
            out.list(&members, "no members", &headers, |member| {
                vec![
                    strong(&member.email),
                    cell(member.role.as_str()),
                    cell(member.groups_of.join(", ")),
                    dim(out.time_or_dash(member.seen_at)),
                    id(&member.account_id),
                ]
            })?;
        }
        Members::Role { member, role } => {
            let found = find(client, &member).await?;
            let changed = client.set_member_role(found.account_id.as_str(), &UpdateMember { role }).await?;
            if out.json {
                out.json(&changed)?;
            } else {
                out.success(&format!("{} is {} now", changed.email, changed.role.as_str()));
            }
        }
        Members::Remove { member, yes } => {
            let found = find(client, &member).await?;
            let email = &found.email;
            confirm(
                out,
                yes,
                &format!("removing {email}"),
                &format!("remove {email}, and sign the person out everywhere?"),
            )?;
            let removed = client.remove_member(found.account_id.as_str()).await?;
            if out.json {
                out.json(&removed)?;
            } else {
                out.success(&format!("{email} is removed, and signed out everywhere"));
                if !removed.groups_of.is_empty() {
                    out.hint(&format!(
                        "groups of {} give a role again with the next sign-in; remove the person there, too",
                        removed.groups_of.join(", ")
                    ));
                }
            }
        }
    }
    Ok(0)
}

async fn find(client: &Client, wanted: &str) -> Result<OrgMember> {
    let members = client.members().await?;
    let is = |member: &OrgMember| {
        let id = member.account_id.as_str();
        member.email.eq_ignore_ascii_case(wanted) || id == wanted || ids::stands_for(wanted, id)
    };
    let mut found: Vec<OrgMember> = members.iter().filter(|member| is(member)).cloned().collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let names: Vec<String> = members.into_iter().map(|member| member.email).collect();
            let error = CliError::new(Exit::NotFound, format!("there is no member `{wanted}`"));
            Err(match suggestion(wanted, &names) {
                Some(hint) => error.hint(hint),
                None => error.hint("run `ferry members list` to see them"),
            })
        }
        more => Err(CliError::usage(format!("{more} members have the address `{wanted}`"))
            .hint("pass the id; run `ferry members list --wide` to see it")),
    }
}

pub(crate) async fn invite(client: &Client, out: &Output, email: String, role: Role) -> Result<u8> {
    let invite = client.invite(&CreateOrgInvite { email, role_type: None, role: Some(role) }).await?;
    if out.json {
        out.json(&invite)?;
        return Ok(0);
    }
    out.success(&format!("{} is invited as {}; the link is shown only once", invite.email, invite.role.as_str()));
    out.line(invite.url.as_deref().unwrap_or("-"))?;
    match invite.mailed {
        Some(true) => out.note("it was also mailed; it is good for 7 days, once"),
        None => out.note("it may have been mailed, too; it is good for 7 days, once; an earlier link is over"),
        Some(false) => {
            out.note("it was not mailed: send it to the person. It is good for 7 days, once; an earlier link is over");
        }
    }
    Ok(0)
}

pub(crate) async fn invites(client: &Client, out: &Output) -> Result<u8> {
    let invites = client.invites().await?;
    let headers = ["EMAIL", "ROLE", "STATUS", "EXPIRES", "?CREATED", "?ID"];
    out.list(&invites, "no invites", &headers, |invite| {
        vec![
            strong(&invite.email),
            cell(invite.role.as_str()),
            status(&invite.status),
            cell(out.time(invite.expires_at)),
            dim(out.time(invite.created_at)),
            id(&invite.id),
        ]
    })?;
    Ok(0)
}

pub(crate) async fn revoke(client: &Client, out: &Output, wanted: &str, yes: Yes) -> Result<u8> {
    confirm(out, yes, &format!("revoking the invite for `{wanted}`"), &format!("revoke the invite for `{wanted}`?"))?;
    let invites = client.invites().await?;
    let is = |invite: &&OrgInvite| {
        invite.id.as_str() == wanted || (invite.email.eq_ignore_ascii_case(wanted) && invite.status == "pending")
    };
    let found = invites.iter().find(is).ok_or_else(|| {
        CliError::new(Exit::NotFound, format!("there is no open invite for `{wanted}`"))
            .hint("run `ferry orgs invites`")
    })?;
    let revoked = client.revoke_invite(found.id.as_str()).await?;
    if out.json {
        out.json(&revoked)?;
    } else {
        out.success(&format!("the invite for {} is {}", revoked.email, revoked.status));
    }
    Ok(0)
}
