//! Who one is at a registry.

use jiff::Timestamp;

use super::login::Login;
use super::{PullError, Registry};

/// A login, as it can be told to a person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Who {
    /// The user's name, or the ARN of the AWS identity; `None` for nobody.
    pub name: Option<String>,
    /// Where the credentials are from.
    pub source: String,
    /// When the login ends, where that is known.
    pub ends: Option<Timestamp>,
}

impl Registry {
    /// Who one is here. At ECR this logs in, and the token is kept.
    pub(crate) async fn who(&self) -> Result<Who, PullError> {
        match &self.logins.login {
            Login::Anonymous => Ok(Who { name: None, source: "no credentials".into(), ends: None }),
            Login::Password(credentials) => {
                Ok(Who { name: Some(credentials.user.clone()), source: "docker config.json".into(), ends: None })
            }
            Login::Ecr(ecr) => {
                let (token, name, source) = ecr.introduce().await?;
                let ends = Some(token.ends);
                self.logins.keep(token).await;
                Ok(Who { name: Some(name), source, ends })
            }
        }
    }
}
