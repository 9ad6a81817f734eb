//! The rule for secrets in chart values: what may not stand in a bundle or in a `ManagedComponent`.
//!
//! A finding is a string under a key whose last word names a secret (`password`, `token`, `apiKey`, `secretKey`, …), at any depth and
//! inside lists, or a URL that carries a password. A number is one, too, where the word does not name what is counted (`maxTokens`): YAML
//! reads a password of digits as a number. Real charts hold many harmless keys of that look (`passwordKey`,
//! `existingSecretPasswordKey`, `tokenExpiration`, `bearer_token_file`); they pass, because their last word names something else.

use serde_json::Value;

/// Last words, or last two words joined, that name a secret.
const SECRET_WORDS: [&str; 20] = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "credential",
    "credentials",
    "apikey",
    "secretkey",
    "privatekey",
    "accesskey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "authkey",
    "clientsecret",
    "pwd",
    "tokens",
    "passwords",
    "secrets",
];

/// Those of them under which a number is a count or a limit.
const COUNTED: [&str; 6] = ["token", "tokens", "passwords", "secrets", "credential", "credentials"];

/// The paths (`auth.users[0].password`) of all strings that look like secrets; never the strings.
#[must_use]
pub fn secrets_in(values: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(values, &mut String::new(), None, &mut found);
    found
}

/// `under` is the word of the key, where it names a secret.
fn walk(value: &Value, path: &mut String, under: Option<&str>, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                let length = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                walk(child, path, secret_word(key), found);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (i, child) in items.iter().enumerate() {
                let length = path.len();
                path.push_str(&format!("[{i}]"));
                walk(child, path, under, found);
                path.truncate(length);
            }
        }
        Value::String(text) if !text.is_empty() && (under.is_some() || has_url_password(text)) => found.push(path.clone()),
        Value::Number(_) if under.is_some_and(|word| !COUNTED.contains(&word)) => found.push(path.clone()),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn secret_word(key: &str) -> Option<&'static str> {
    let words = words(key);
    let last = words.last().map(String::as_str).unwrap_or_default();
    let last_two = words.iter().rev().take(2).rev().map(String::as_str).collect::<String>();
    SECRET_WORDS.into_iter().find(|word| *word == last_two || *word == last)
}

/// `bearer_tokenFile` → `bearer`, `token`, `file`; a run of capitals is one word (`APIKey` → `api`, `key`).
fn words(key: &str) -> Vec<String> {
    let letters: Vec<char> = key.chars().collect();
    let mut words = vec![String::new()];
    for (i, &c) in letters.iter().enumerate() {
        let starts_word = c.is_uppercase()
            && i > 0
            && (letters[i - 1].is_lowercase() || letters[i - 1].is_numeric() || letters.get(i + 1).is_some_and(|n| n.is_lowercase()));
        if !c.is_alphanumeric() || starts_word {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `scheme://user:password@host`, anywhere in the text.
fn has_url_password(text: &str) -> bool {
    text.match_indices("://").any(|(at, _)| {
        let authority = text[at + 3..].split(['/', '?', '#', ' ', '"', '\'', '\n', ',']).next().unwrap_or_default();
        authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_found_at_any_depth() {
        let values = json!({
            "auth": {"password": "x", "users": [{"name": "a", "apiKey": "k"}, {"clickhouse_secretKey": "s"}]},
            "tokens": ["a"], "APIKey": "x", "db": "postgres://u:p@host/db", "credentials": "x", "adminPassword": "x", "AWS_SECRET_ACCESS_KEY": "x",
            "redis": {"password": 20_240_101, "pwd": [0]},
        });
        let mut found = secrets_in(&values);
        found.sort();
        assert_eq!(
            found,
            [
                "APIKey",
                "AWS_SECRET_ACCESS_KEY",
                "adminPassword",
                "auth.password",
                "auth.users[0].apiKey",
                "auth.users[1].clickhouse_secretKey",
                "credentials",
                "db",
                "redis.password",
                "redis.pwd[0]",
                "tokens[0]",
            ]
        );
    }

    #[test]
    fn what_only_looks_like_one_passes() {
        let values = json!({
            "automountServiceAccountToken": true, "passwordKey": "pw", "existingSecretPasswordKey": "pw", "usePasswordFiles": "yes",
            "tokenExpiration": "1h", "bearer_token_file": "/run/t", "password": "", "token": null, "existingSecretName": "s", "tokenPath": "/t",
            "secretRef": "name", "url": "https://host:8443/path", "image": "registry/x@sha256:00", "mail": "mailto:a@b", "secret": {"name": "n"},
            "maxTokens": 4096, "llm": {"token": 512}, "credentials": 2, "enablePassword": false,
        });
        assert_eq!(secrets_in(&values), [] as [String; 0]);
    }
}
