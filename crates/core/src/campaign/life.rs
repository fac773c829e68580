//! A campaign's life: which deed makes sense when.

/// Where a campaign stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CampaignState {
    /// It is being written. Left by launching or cancelling it.
    Draft,
    /// Its mails are scheduled and go out.
    Running,
    /// A person stopped it for a while.
    Paused,
    /// A person ended it: nothing more goes out, ever.
    Cancelled,
    /// All of its mails have come to their ends. New prospects make it run again.
    Done,
}

/// What is done to a campaign.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum CampaignAction {
    /// Schedules its mails.
    Launch,
    /// Stops it for a while.
    Pause,
    /// Lets it go on.
    Resume,
    /// Ends it.
    Cancel,
    /// Its last mail has come to its end.
    Finish,
    /// Schedules the mails of prospects that came later.
    Schedule,
}

/// A deed that makes no sense as the campaign stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {} a campaign that is {}", .action.name(), .state.name())]
pub struct NotNow {
    /// What was wanted.
    pub action: CampaignAction,
    /// How it stands.
    pub state: CampaignState,
}

impl CampaignState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Draft, Self::Running, Self::Paused, Self::Cancelled, Self::Done];

    /// The state's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Done => "done",
        }
    }

    /// The state with this word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// How it stands after a deed. To launch, pause, resume or cancel twice changes nothing.
    pub fn after(self, action: CampaignAction) -> Result<Self, NotNow> {
        use CampaignAction as A;
        match (self, action) {
            (Self::Draft | Self::Running, A::Launch) => Ok(Self::Running),
            // Whether somebody is left to be planned, whoever schedules finds out.
            (Self::Done, A::Launch) => Ok(Self::Done),
            (Self::Running | Self::Done, A::Schedule) => Ok(Self::Running),
            (Self::Running | Self::Paused, A::Pause) => Ok(Self::Paused),
            (Self::Paused | Self::Running, A::Resume) => Ok(Self::Running),
            (Self::Draft | Self::Running | Self::Paused | Self::Cancelled, A::Cancel) => Ok(Self::Cancelled),
            (Self::Running, A::Finish) => Ok(Self::Done),
            (
                Self::Draft | Self::Paused | Self::Cancelled | Self::Done,
                A::Launch | A::Schedule | A::Pause | A::Resume | A::Cancel | A::Finish,
            ) => Err(NotNow { action, state: self }),
        }
    }
}

impl CampaignAction {
    /// The deed's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Finish => "finish",
            Self::Schedule => "schedule",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_sense_happens() {
        use CampaignAction::*;
        use CampaignState as S;
        for (state, action, after) in [
            (S::Draft, Launch, Some(S::Running)),
            (S::Draft, Schedule, None),
            (S::Draft, Pause, None),
            (S::Draft, Cancel, Some(S::Cancelled)),
            (S::Running, Launch, Some(S::Running)),
            (S::Running, Schedule, Some(S::Running)),
            (S::Running, Pause, Some(S::Paused)),
            (S::Running, Finish, Some(S::Done)),
            (S::Paused, Launch, None),
            (S::Paused, Schedule, None),
            (S::Paused, Pause, Some(S::Paused)),
            (S::Paused, Resume, Some(S::Running)),
            (S::Paused, Finish, None),
            (S::Cancelled, Launch, None),
            (S::Cancelled, Resume, None),
            (S::Cancelled, Cancel, Some(S::Cancelled)),
            (S::Done, Schedule, Some(S::Running)),
            (S::Done, Launch, Some(S::Done)),
            (S::Done, Cancel, None),
        ] {
            assert_eq!(state.after(action).ok(), after, "{state:?} {action:?}");
        }
        let wrong = S::Draft.after(Schedule).unwrap_err();
        assert_eq!(wrong.to_string(), "cannot schedule a campaign that is draft");
        for state in S::ALL {
            assert_eq!(S::from_name(state.name()), Some(state));
        }
    }
}
