//! The methods that either side calls: those of AMQP 0-9-1 that are used here, and what RabbitMQ adds to them.

use bytes::{BufMut, Bytes, BytesMut};

use super::table::Table;
use super::wire::{Long, Malformed, Short, Wire};

/// Makes the methods: a name, its class and number, and its arguments in order. Flags stand together in one byte.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($class:literal, $number:literal) { $($field:ident: $type:ty),* })*) => {
        /// A method with its arguments.
        #[allow(missing_docs, reason = "the arguments are called as in the protocol")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Method {
            $( $(#[$doc])* $name { $($field: $type),* }, )*
        }

        impl Method {
            /// Reads a method with its arguments.
            pub fn read(mut from: Bytes) -> Result<Self, Malformed> {
                let class = u16::read(&mut from)?;
                let number = u16::read(&mut from)?;
                match (class, number) {
                    $( ($class, $number) => Ok(Self::$name { $($field: <$type>::read(&mut from)?),* }), )*
                    _ => Err(Malformed("a method that nobody asked for")),
                }
            }

            /// Writes a method with its arguments.
            pub fn write(&self, to: &mut BytesMut) {
                match self {
                    $( Self::$name { $($field),* } => {
                        to.put_u16($class);
                        to.put_u16($number);
                        $( $field.write(to); )*
                    } )*
                }
            }

            /// What it is called.
            pub fn name(&self) -> &'static str {
                match self {
                    $( Self::$name { .. } => stringify!($name), )*
                }
            }
        }
    };
}

methods! {
    /// The broker says who it is.
    ConnectionStart(10, 10) { major: u8, minor: u8, properties: Table, mechanisms: Long, locales: Long }
    /// Who we are.
    ConnectionStartOk(10, 11) { properties: Table, mechanism: Short, response: Long, locale: Short }
    /// What the broker can bear.
    ConnectionTune(10, 30) { channel_max: u16, frame_max: u32, heartbeat: u16 }
    /// What we settle for.
    ConnectionTuneOk(10, 31) { channel_max: u16, frame_max: u32, heartbeat: u16 }
    /// Which of the broker's worlds we want.
    ConnectionOpen(10, 40) { virtual_host: Short, reserved_1: Short, reserved_2: u8 }
    /// We are in.
    ConnectionOpenOk(10, 41) { reserved: Short }
    /// The other side ends the connection.
    ConnectionClose(10, 50) { code: u16, text: Short, class: u16, number: u16 }
    /// So be it.
    ConnectionCloseOk(10, 51) {}
    /// The broker takes nothing more for now.
    ConnectionBlocked(10, 60) { reason: Short }
    /// It does again.
    ConnectionUnblocked(10, 61) {}
    /// Opens a channel.
    ChannelOpen(20, 10) { reserved: Short }
    /// It is open.
    ChannelOpenOk(20, 11) { reserved: Long }
    /// Asks for silence, or for more.
    ChannelFlow(20, 20) { active: u8 }
    /// So be it.
    ChannelFlowOk(20, 21) { active: u8 }
    /// The other side ends the channel.
    ChannelClose(20, 40) { code: u16, text: Short, class: u16, number: u16 }
    /// So be it.
    ChannelCloseOk(20, 41) {}
    /// Makes an exchange, or looks for one.
    ExchangeDeclare(40, 10) { reserved: u16, exchange: Short, kind: Short, flags: u8, arguments: Table }
    /// It is there.
    ExchangeDeclareOk(40, 11) {}
    /// Makes a queue, or looks for one.
    QueueDeclare(50, 10) { reserved: u16, queue: Short, flags: u8, arguments: Table }
    /// It is there.
    QueueDeclareOk(50, 11) { queue: Short, messages: u32, consumers: u32 }
    /// Leads from an exchange to a queue.
    QueueBind(50, 20) { reserved: u16, queue: Short, exchange: Short, routing_key: Short, flags: u8, arguments: Table }
    /// It does.
    QueueBindOk(50, 21) {}
    /// Deletes a queue.
    QueueDelete(50, 40) { reserved: u16, queue: Short, flags: u8 }
    /// It is gone.
    QueueDeleteOk(50, 41) { messages: u32 }
    /// How much may be on its way to us.
    BasicQos(60, 10) { prefetch_bytes: u32, prefetch: u16, flags: u8 }
    /// So be it.
    BasicQosOk(60, 11) {}
    /// Asks for what comes to a queue.
    BasicConsume(60, 20) { reserved: u16, queue: Short, tag: Short, flags: u8, arguments: Table }
    /// It will come.
    BasicConsumeOk(60, 21) { tag: Short }
    /// Nothing more comes: the queue is gone, or whoever asked says so.
    BasicCancel(60, 30) { tag: Short, flags: u8 }
    /// So be it.
    BasicCancelOk(60, 31) { tag: Short }
    /// A message; its content follows.
    BasicPublish(60, 40) { reserved: u16, exchange: Short, routing_key: Short, flags: u8 }
    /// A message that led nowhere; its content follows.
    BasicReturn(60, 50) { code: u16, text: Short, exchange: Short, routing_key: Short }
    /// A message for us; its content follows.
    BasicDeliver(60, 60) { consumer: Short, tag: u64, flags: u8, exchange: Short, routing_key: Short }
    /// Asks for one message.
    BasicGet(60, 70) { reserved: u16, queue: Short, flags: u8 }
    /// Here it is; its content follows.
    BasicGetOk(60, 71) { tag: u64, flags: u8, exchange: Short, routing_key: Short, messages: u32 }
    /// There is none.
    BasicGetEmpty(60, 72) { reserved: Short }
    /// Taken.
    BasicAck(60, 80) { tag: u64, flags: u8 }
    /// Not taken.
    BasicNack(60, 120) { tag: u64, flags: u8 }
    /// Asks for a word on every message.
    ConfirmSelect(85, 10) { flags: u8 }
    /// It will be said.
    ConfirmSelectOk(85, 11) {}
}

/// Flags of methods.
pub mod flags {
    /// `basic.publish`: come back if you lead nowhere.
    pub const MANDATORY: u8 = 1;
    /// `basic.ack` and `basic.nack`: this one and all before it.
    pub const MULTIPLE: u8 = 1;
    /// `basic.nack`: put it back.
    pub const REQUEUE: u8 = 2;
    /// `basic.deliver`: it was on its way before.
    pub const REDELIVERED: u8 = 1;
    /// `queue.declare` and `exchange.declare`: only look.
    pub const PASSIVE: u8 = 1;
    /// `queue.declare` and `exchange.declare`: survives a restart of the broker.
    pub const DURABLE: u8 = 2;
}
