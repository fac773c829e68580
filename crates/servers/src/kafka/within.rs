//! The cluster that comes with librdkafka. It lives within this process and speaks the real protocol on real ports of this
//! machine, keeps its topics in memory, and can be told to fail.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;

type Cluster = MockCluster<'static, DefaultProducerContext>;
type Deed = Box<dyn FnOnce(&Cluster) + Send>;

/// A cluster on a thread of its own: it can't be moved between threads.
pub(super) struct Within {
    deeds: Sender<Deed>,
}

impl Within {
    /// Starts a cluster of so many brokers. Says where they are, too.
    pub(super) fn start(brokers: i32) -> (Self, String) {
        let (deeds, coming) = channel::<Deed>();
        let (told, tell) = channel();
        thread::spawn(move || {
            let cluster = MockCluster::new(brokers).expect("a cluster within this process");
            told.send(cluster.bootstrap_servers()).expect("whoever starts it waits for it");
            for deed in coming {
                deed(&cluster);
            }
        });
        (Self { deeds }, tell.recv().expect("the cluster starts"))
    }

    /// Has something done on the cluster's own thread, and waits for it.
    pub(super) fn have<T: Send + 'static>(&self, deed: impl FnOnce(&Cluster) -> T + Send + 'static) -> T {
        let (told, tell) = channel();
        let deed = move |cluster: &Cluster| {
            let _ = told.send(deed(cluster));
        };
        self.deeds.send(Box::new(deed)).expect("the cluster lives as long as this does");
        tell.recv().expect("the cluster lives as long as this does")
    }
}
