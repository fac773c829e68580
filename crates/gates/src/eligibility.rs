//! Asks a service by HTTP whether whoever a message is for still wants it: `GET …/devices/{device_id}`.

mod answer;
mod breaker;
mod cache;
mod config;
mod gate;
mod template;

pub use config::EligibilityConfig;
pub use gate::EligibilityGate;
pub use template::Template;
