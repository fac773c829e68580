//! The rules for whatever remembers who may come in.

pub mod keys;
pub mod sessions;

use redeliver_engine::access::{Access, KeyRecord, Role};
use redeliver_engine::store::Store;

use crate::make::at;

/// Something with a fresh, empty store in it that knows keys and sessions.
pub trait AccessRig: Send + Sync {
    /// Who may come in, as the store under test has it.
    fn access(&self) -> &dyn Access;

    /// The store itself, which has the deeds.
    fn store(&self) -> &dyn Store;
}

impl<S: Access + Store> AccessRig for S {
    fn access(&self) -> &dyn Access {
        self
    }

    fn store(&self) -> &dyn Store {
        self
    }
}

#[doc(hidden)]
pub fn subject(rig: &dyn AccessRig) -> &dyn AccessRig {
    rig
}

/// The n-th key, made at that second.
fn key(n: u8) -> KeyRecord {
    KeyRecord {
        id: format!("k{n}").into(),
        name: format!("key {n}").into(),
        digest: [n; 32],
        workspace: None,
        role: Role::Operator,
        created_at: at(i64::from(n)),
        revoked_at: None,
    }
}

/// Makes one test of every rule for keys and sessions. The expression makes a fresh [`AccessRig`], such as a store.
#[macro_export]
macro_rules! access_tests {
    ($rig:expr) => {
        $crate::each_rule! { access, $rig,
            keys {
                a_key_comes_back_as_it_was_given
                every_role_comes_back
                an_unknown_key_is_no_error
                an_id_is_given_once
                keys_are_listed_oldest_first
                a_revoked_key_says_since_when
                a_key_is_revoked_once
                a_deed_is_written_with_its_key
            }
            sessions {
                a_session_comes_back_as_it_was_given
                a_session_that_is_over_is_not_there
                a_session_that_was_ended_is_not_there
                a_session_lives_no_longer_than_its_key
                ending_one_session_leaves_the_others
            }
        }
    };
}
