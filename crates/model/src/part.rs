//! How a part of an install stands: its sandbox, or one of its components. The words are those of the API.

/// Ordered from the best to the worst: of several parts the worst one speaks for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartStatus {
    /// Deployed, and the last apply succeeded.
    Active,
    /// Torn down.
    Inactive,
    /// Never deployed.
    Pending,
    /// The last apply failed: what is there may be any mixture of before and after.
    Error,
    /// Nobody knows how the last apply ended.
    Unknown,
}

impl PartStatus {
    pub const ALL: [Self; 5] = [Self::Active, Self::Inactive, Self::Pending, Self::Error, Self::Unknown];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Inactive => "inactive",
            Self::Pending => "pending",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }

    /// How the state of an install names it; a part without a status was never deployed.
    pub fn parse(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::Pending };
        // A word of a newer version is no reason to call anything well.
        Self::ALL.into_iter().find(|status| status.as_str() == text).unwrap_or(Self::Unknown)
    }

    /// Whether there may be something to tear down.
    pub const fn is_there(self) -> bool {
        match self {
            Self::Active | Self::Error | Self::Unknown => true,
            Self::Inactive | Self::Pending => false,
        }
    }

    /// How several parts stand together.
    pub fn worst(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max().unwrap_or(Self::Pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_part_speaks_for_all() {
        use PartStatus::{Active, Error, Inactive, Pending, Unknown};
        let cases: [(&[PartStatus], PartStatus); 7] = [
            (&[Active, Error], Error),
            (&[Error, Active, Unknown], Unknown),
            (&[Active, Inactive], Inactive),
            (&[Active, Pending], Pending),
            (&[Inactive, Inactive], Inactive),
            (&[Active], Active),
            (&[], Pending),
        ];
        for (parts, together) in cases {
            assert_eq!(PartStatus::worst(parts.iter().copied()), together, "{parts:?}");
        }
    }

    #[test]
    fn words_are_read_back_and_strange_ones_are_not_well() {
        for status in PartStatus::ALL {
            assert_eq!(PartStatus::parse(Some(status.as_str())), status);
        }
        assert_eq!(PartStatus::parse(None), PartStatus::Pending);
        assert_eq!(PartStatus::parse(Some("splendid")), PartStatus::Unknown);
    }
}
