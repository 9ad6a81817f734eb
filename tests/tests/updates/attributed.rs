//! Everything is attributed, across a person, the cluster, the executor and the vendor's record: who consented to what, when and until
//! when; why a command was refused; and an executor that the vendor cuts off.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition};
use system_tests::eventually;
use system_tests::landscape::{Closing, Landscape, SOON};

#[tokio::test(flavor = "multi_thread")]
async fn consent_refusal_and_revocation_are_on_record() {
    let landscape = Landscape::new().await;
    let release = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let sha256 = landscape.propose("platform-1", &release).await.unwrap();
    landscape.until_ended(&sha256).await;

    a_refusal_has_its_code_everywhere(&landscape).await;
    assert_eq!(approvals(&landscape).await.unwrap(), [] as [Value; 0], "nobody has approved, there is not even the kind");

    let closing = Closing::of(&landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap()).unwrap();
    landscape.until_status("synced", &sha256).await;
    let given = eventually("the approval at the manager", SOON, || async {
        let all = approvals(&landscape).await?;
        let [given] = all.as_slice() else { anyhow::bail!("{all:?}") };
        ensure!(given["expires_at"] == closing.expiry.as_str(), "{given}");
        Ok(given.clone())
    })
    .await;
    assert_eq!((given["sha256"].as_str(), given["objects"].as_u64()), (Some(sha256.as_str()), u64::try_from(closing.workload).ok()));
    let by = landscape.connector.approval().unwrap()["approved_by"].clone();
    assert_eq!((&given["approved_by"], given["executor"].as_str()), (&by, Some(executor(&landscape).await.unwrap().as_str())));
    let heartbeat = landscape.environment().await.unwrap()["executors"][0].to_string();
    assert!(!heartbeat.contains("workloads"), "the pinned objects stay in the cluster");

    landscape.connector.revoke(&[]).await.unwrap().ok().unwrap();
    eventually("the approval's earlier end", SOON, || async {
        let all = approvals(&landscape).await?;
        let end =
            |approval: &Value| approval["expires_at"].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()).context("no end");
        ensure!(all.len() == 1 && end(&all[0])? < end(&given)?, "{all:?}");
        Ok(())
    })
    .await;
    let exported = landscape.manager.cli(&["audit", "export"]).await.unwrap().ok().unwrap().stdout;
    let entries: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_approval = entries.iter().filter(|entry| entry["what"] == "approval" && entry["sha256"] == sha256.as_str()).count();
    assert!(of_approval >= 2, "given, and revoked:\n{exported}");
    assert!(entries.iter().any(|entry| entry["path"].as_str().is_some_and(|path| path.ends_with("/proposals"))));

    a_revoked_executor_is_told_so(&landscape).await;
}

/// For a program and for a person, at the customer's and at the vendor's.
async fn a_refusal_has_its_code_everywhere(landscape: &Landscape) {
    let commands = landscape.connector.commands().await.unwrap();
    let (id, code) = (commands[0]["id"].as_str().unwrap(), &commands[0]["code"]);
    assert_eq!(code, "approval_missing");
    let told = landscape.connector.run(&["commands", "get", id, "-o", "table"]).await.unwrap().ok().unwrap();
    assert!(told.stdout.contains("approval_missing"), "{}", told.stdout);
    assert!(told.stderr.contains("hint: No approval was given yet. See docs/errors/approval_missing.md"), "{}", told.stderr);
    let told = landscape.connector.run(&["commands", "get", id, "-o", "json"]).await.unwrap().ok().unwrap();
    assert!(!told.stderr.contains("hint:"), "{}", told.stderr);
    eventually("the code at the manager", SOON, || async {
        let at_manager = landscape.commands_at_manager().await?;
        ensure!(at_manager.iter().any(|command| command["id"] == id && command["code"] == "approval_missing"), "{at_manager:?}");
        Ok(())
    })
    .await;
}

async fn a_revoked_executor_is_told_so(landscape: &Landscape) {
    let (id, mark) = (executor(landscape).await.unwrap(), landscape.executor_log_length());
    landscape.manager.cli(&["executor", "revoke", &id]).await.unwrap().ok().unwrap();
    landscape.until_logged(mark, &["ERROR", "does not take this executor's certificate or key", "this executor was revoked"]).await;
    let environment = landscape.environment().await.unwrap();
    assert_eq!(environment["executors"][0]["connected"], json!(false));
}

async fn executor(landscape: &Landscape) -> Result<String> {
    Ok(landscape.environment().await?["executors"][0]["id"].as_str().context("no executor")?.to_owned())
}

async fn approvals(landscape: &Landscape) -> Result<Vec<Value>> {
    let environment = landscape.environment().await?["name"].as_str().context("no name")?.to_owned();
    let shown = landscape.manager.quiet_cli(&["environment", "approvals", &environment, "-o", "json"]).await?.ok()?;
    Ok(serde_json::from_str(&shown.stdout)?)
}
