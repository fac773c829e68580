//! The rules for whatever remembers campaigns.

pub mod plans;
pub mod prospects;
pub mod quotas;
pub mod suppressions;

use std::collections::BTreeMap;

use redeliver_core::campaign::{Campaign, CampaignState, Ends, Ledger, Prospect};
use redeliver_core::change::Audit;
use redeliver_engine::campaigns::{CampaignRecord, Campaigns};
use redeliver_engine::store::Store;

use crate::make::at;

/// Something with a fresh, empty store in it that knows campaigns.
pub trait CampaignRig: Send + Sync {
    /// The campaigns of the store under test.
    fn campaigns(&self) -> &dyn Campaigns;

    /// The store itself, which has the messages and the deeds.
    fn store(&self) -> &dyn Store;
}

impl<S: Campaigns + Store> CampaignRig for S {
    fn campaigns(&self) -> &dyn Campaigns {
        self
    }

    fn store(&self) -> &dyn Store {
        self
    }
}

#[doc(hidden)]
pub fn subject(rig: &dyn CampaignRig) -> &dyn CampaignRig {
    rig
}

/// A campaign with two steps.
fn campaign(id: &str, state: CampaignState) -> CampaignRecord {
    let definition: Campaign = serde_json::from_str(
        r#"{ "name": "Spring", "sequence_id": "seq-1", "route": "mail", "from": "ada@example.org", "steps": [
            { "order": 1, "subject": "Hi {{ first_name }}", "text": "Hello" },
            { "order": 2, "delay_days": 3, "subject": "Again", "html": "<p>Hi</p>" } ],
           "settings": { "zone": "Europe/Paris", "daily_quota": 7 }, "start_at": "2027-03-08T00:00:00Z" }"#,
    )
    .unwrap();
    CampaignRecord {
        id: id.into(),
        workspace: "default".into(),
        definition,
        state,
        ledger: Ledger::default(),
        prospects: 0,
        scheduled: 0,
        last_at: None,
        paused_for: None,
        ends: Ends::default(),
        created_at: at(0),
    }
}

/// The n-th prospect.
fn prospect(n: u32) -> Prospect {
    let name = format!("Ada {n} \u{0} ünïcode");
    Prospect {
        id: format!("p-{n}"),
        email: format!("ada{n}@example.org"),
        zone: n.is_multiple_of(2).then(|| "Asia/Tokyo".to_owned()),
        fields: BTreeMap::from([("first_name".to_owned(), name)]),
    }
}

fn deed(action: &'static str) -> Audit {
    Audit { actor: "ann".into(), action, subject: "campaign:c".into(), at: at(1), detail: None }
}

async fn add(rig: &dyn CampaignRig, record: CampaignRecord) {
    assert!(rig.campaigns().add_campaign(record, deed("create_campaign")).await.unwrap());
}

/// Makes one test of every rule for campaigns. The expression makes a fresh [`CampaignRig`], such as a store.
#[macro_export]
macro_rules! campaign_tests {
    ($rig:expr) => {
        $crate::each_rule! { campaigns, $rig,
            prospects {
                a_campaign_comes_back_as_it_was_given
                campaigns_are_their_workspaces
                a_campaign_moves_only_from_where_it_stands
                settings_come_back_and_count_their_versions
                prospects_keep_the_order_in_which_they_came
                a_prospect_is_enrolled_once
                those_who_enrol_at_once_get_positions_without_gaps
                a_prospect_is_corrected_in_its_place
                a_prospect_is_stopped_once
                a_prospect_is_paused_until_they_are_resumed
                whoever_was_stopped_is_neither_paused_nor_resumed
                a_dossier_has_what_is_needed_and_nothing_is_none
            }
            plans {
                a_part_is_kept_with_its_mails
                a_part_that_was_read_too_long_ago_is_not_kept
                nothing_is_planned_for_a_campaign_that_does_not_run
                a_mail_whose_key_is_known_is_left_out
                of_many_who_plan_at_once_one_keeps_its_part
                an_interrupted_planning_is_counted_until_a_part_is_kept
                a_campaign_keeps_why_it_was_paused
                messages_are_found_by_their_keys
                how_mails_have_ended_is_counted_with_each_change
                those_who_end_mails_at_once_count_each_of_them
                what_has_something_left_to_be_done_is_found
            }
            quotas {
                what_was_reserved_is_counted_until_the_limit
                what_a_campaign_sent_is_counted_day_by_day
                a_full_one_counts_nothing_anywhere
                a_look_for_room_counts_nothing
                what_was_given_back_can_be_taken_again
                a_sender_keeps_its_distance
                a_ramp_up_counts_the_days_with_a_mail
                any_24_hours_are_counted_together
                those_who_reserve_at_once_never_exceed_the_limit
            }
            suppressions {
                an_address_is_on_the_list_once
                the_list_is_its_workspaces_and_can_be_left
                an_odd_address_is_simply_not_there
            }
        }
    };
}
