//! `redeliver senders`: stops whoever mails come from, and lets them go again.

use super::destinations::list;
use super::print;
use crate::args::{SenderArgs, SendersCommand};
use crate::reach::{self, Missing, Reach, Request, segment};

pub(super) fn run(command: &SendersCommand) -> anyhow::Result<()> {
    match command {
        SendersCommand::List { output, reach } => list("/v1/senders", "sender", *output, reach),
        SendersCommand::Pause(args) => change(args, "pause", "paused"),
        SendersCommand::Resume(args) => change(args, "resume", "running"),
    }
}

fn change(args: &SenderArgs, verb: &str, done: &str) -> anyhow::Result<()> {
    reach::run(async {
        let reach = Reach::open(&args.reach, Missing::Refuse).await?;
        let path = format!("/v1/senders/{}/{verb}", segment(&args.address));
        let sender = reach.json(Request::post(path)).await?;
        print(&if args.json { format!("{sender}\n") } else { format!("{}  {done}\n", args.address) })
    })
}
