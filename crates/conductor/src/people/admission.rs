//! Who may come in, by what a provider says of them. Pure.

use std::collections::BTreeMap;

use model::Role;

use crate::error::PeopleError;

/// What a provider has said of somebody; signature, issuer, audience, nonce and times are checked already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    pub issuer: String,
    pub subject: String,
    pub email: Option<String>,
    pub email_verified: bool,
    /// Claims that are a text or a list of texts.
    pub texts: BTreeMap<String, Vec<String>>,
}

/// A group gives a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub claim: String,
    pub value: String,
    /// Name or id.
    pub org: String,
    pub role: Role,
}

/// What a provider may let in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admission {
    /// As it is configured.
    pub provider: String,
    /// For people.
    pub title: String,
    /// Whoever has an address there may come in; empty: only who is invited, or whom a group gives a role.
    pub allowed_domains: Vec<String>,
    pub grants: Vec<Grant>,
}

impl Admission {
    /// The address, if it is one and the provider vouches for it.
    pub fn email(&self, claims: &Claims) -> Result<String, PeopleError> {
        let given = claims.email.as_deref().filter(|email| !email.trim().is_empty());
        let given = given.ok_or_else(|| PeopleError::NoEmail { provider: self.title.clone() })?;
        let email = model::name::email(given).map_err(PeopleError::Email)?;
        if claims.email_verified {
            Ok(email)
        } else {
            Err(PeopleError::NotVerified { provider: self.title.clone(), email })
        }
    }

    /// Whether everybody of this address's domain may come in.
    pub fn allows(&self, email: &str) -> bool {
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        self.allowed_domains.iter().any(|allowed| allowed.eq_ignore_ascii_case(domain))
    }

    /// The roles that the groups give, by the org's name or id; the highest for each.
    pub fn roles(&self, claims: &Claims) -> BTreeMap<String, Role> {
        let mut roles: BTreeMap<String, Role> = BTreeMap::new();
        for grant in &self.grants {
            let has = claims.texts.get(&grant.claim).is_some_and(|values| values.contains(&grant.value));
            if has {
                let role = roles.entry(grant.org.clone()).or_insert(grant.role);
                *role = (*role).max(grant.role);
            }
        }
        roles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(email: &str, verified: bool, groups: &[&str]) -> Claims {
        Claims {
            issuer: "https://idp".into(),
            subject: "1".into(),
            email: Some(email.into()),
            email_verified: verified,
            texts: BTreeMap::from([("groups".to_owned(), groups.iter().map(|g| (*g).to_owned()).collect())]),
        }
    }

    fn admission() -> Admission {
        let grant = |value: &str, role| Grant { claim: "groups".into(), value: value.into(), org: "acme".into(), role };
        Admission {
            provider: "idp".into(),
            title: "IdP".into(),
            allowed_domains: vec!["example.com".into()],
            grants: vec![grant("devs", Role::Operator), grant("boss", Role::Admin), grant("all", Role::ReadOnly)],
        }
    }

    #[test]
    fn an_address_must_be_verified() {
        let it = admission();
        assert_eq!(it.email(&claims("Ann@Example.com", true, &[])).unwrap(), "ann@example.com");
        assert!(matches!(it.email(&claims("ann@example.com", false, &[])), Err(PeopleError::NotVerified { .. })));
        assert!(matches!(it.email(&claims(" ", true, &[])), Err(PeopleError::NoEmail { .. })));
        assert!(matches!(it.email(&claims("no address", true, &[])), Err(PeopleError::Email(_))));
    }

    #[test]
    fn a_domain_is_the_whole_domain() {
        let it = admission();
        assert!(it.allows("ann@EXAMPLE.com"));
        for not in ["ann@evil-example.com", "ann@example.com.evil.org", "ann@sub.example.com", "example.com"] {
            assert!(!it.allows(not), "{not}");
        }
    }

    #[test]
    fn the_highest_role_of_all_groups_counts() {
        let it = admission();
        let role = |groups: &[&str]| it.roles(&claims("a@b", true, groups)).get("acme").copied();
        assert_eq!(role(&["all", "devs"]), Some(Role::Operator));
        assert_eq!(role(&["boss", "all"]), Some(Role::Admin));
        assert_eq!(role(&["Devs"]), None);
        assert_eq!(role(&[]), None);
    }
}
