//! Damaged files: refused, kept byte for byte, never silently begun anew.

use super::*;

/// A journal with content in every table, closed.
async fn journal(dir: &Path) -> PathBuf {
    let path = dir.join("executor.db");
    let (mut journal, mut state) = Journal::open(&path, Site::default()).await.unwrap();
    for n in 1..=20 {
        take(&mut journal, &mut state, [Event::Command(command(n)), Event::Continue]).await;
    }
    journal.append(&Record::JobDone { install_id: installation(9), job: job() }, &state.platform).await.unwrap();
    close(journal).await;
    path
}

async fn refused(path: &Path, what: &str) {
    let before = std::fs::read(path).unwrap();
    let error = Journal::open(path, Site::default()).await.err().unwrap_or_else(|| panic!("{what}: it was taken"));
    assert!(matches!(error, JournalError::Damaged { .. }), "{what}: {error:?}");
    let text = error.to_string();
    let told = [format!("journal {} is damaged: ", path.display()), format!("mv {0}.damaged {0}.damaged-", path.display())];
    assert!(told.iter().all(|part| text.contains(part)), "{what}: {text}");
    // Not opened, and none begun, until a person has moved it away.
    assert!(matches!(Journal::open(path, Site::default()).await.err(), Some(JournalError::KeptAside(_))), "{what}");
    assert!(!path.exists(), "{what}: it was begun anew");
    let aside = path.with_extension("db.damaged");
    assert_eq!(aside.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(std::fs::read(aside.join("executor.db")).unwrap() == before, "{what}: the file was changed");
    std::fs::remove_dir_all(aside).unwrap();
}

#[tokio::test]
async fn a_file_that_ends_too_early_or_in_zeros_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = journal(dir.path()).await;
    let whole = std::fs::read(&path).unwrap();
    for length in [0, 1, 15, 16, 99, 100, 4095, 4096, 4097, whole.len() / 2, whole.len() - 4096, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        refused(&path, &format!("cut to {length} of {} bytes", whole.len())).await;
        let mut zeros = whole.clone();
        zeros[length..].fill(0);
        std::fs::write(&path, &zeros).unwrap();
        if zeros != whole {
            refused(&path, &format!("zeros from byte {length}")).await;
        }
    }
    std::fs::write(&path, "not a database, but long enough to be looked at: ".repeat(100)).unwrap();
    refused(&path, "a text").await;
    std::fs::write(&path, &whole).unwrap();
    Journal::open(&path, Site::default()).await.unwrap();
}

/// Each flipped byte is found, or was in a place where nothing lies.
#[tokio::test]
async fn a_flipped_byte_never_changes_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = journal(dir.path()).await;
    let (journal, state) = Journal::open(&path, Site::default()).await.unwrap();
    close(journal).await;
    let whole = std::fs::read(&path).unwrap();
    let (mut found, mut harmless) = (0, 0);
    for place in (0..whole.len()).step_by(whole.len() / 400 + 1) {
        let mut flipped = whole.clone();
        flipped[place] ^= 0x20;
        std::fs::write(&path, &flipped).unwrap();
        match Journal::open(&path, Site::default()).await {
            Err(JournalError::Damaged { .. } | JournalError::Foreign(_) | JournalError::Newer { .. }) => found += 1,
            Err(error) => panic!("byte {place}: {error:?}"),
            Ok((journal, read)) => {
                close(journal).await;
                assert_eq!(
                    (&read.platform, &read.commands, &read.jobs_done),
                    (&state.platform, &state.commands, &state.jobs_done),
                    "{place}"
                );
                harmless += 1;
            }
        }
        let _ = std::fs::remove_file(path.with_extension("db-wal"));
        let _ = std::fs::remove_dir_all(path.with_extension("db.damaged"));
    }
    assert!(found > 100, "{found} found, {harmless} harmless");
}

#[tokio::test]
async fn a_changed_row_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = journal(dir.path()).await;
    let changes = [
        ("UPDATE commands SET acknowledged = 1 WHERE sequence = 2", "commands: a row does not hold what was written"),
        ("UPDATE platform SET body = replace(body, '20', '21')", "platform: a row does not hold what was written"),
        ("DELETE FROM platform", "the platform's row is gone"),
    ];
    let whole = std::fs::read(&path).unwrap();
    for (sql, told) in changes {
        std::fs::write(&path, &whole).unwrap();
        let mut connection = connect(&path).await.unwrap();
        raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let error = Journal::open(&path, Site::default()).await.err().unwrap().to_string();
        assert!(error.contains(told), "{sql}: {error}");
        std::fs::remove_dir_all(path.with_extension("db.damaged")).unwrap();
    }
}

#[tokio::test]
async fn a_journal_without_its_file_is_not_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("executor.db");
    let (mut journal, mut state) = Journal::open(&path, Site::default()).await.unwrap();
    take(&mut journal, &mut state, [Event::Command(command(1))]).await;
    let wal = std::fs::read(dir.path().join("executor.db-wal")).unwrap();
    close(journal).await;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(dir.path().join("executor.db-wal"), wal).unwrap();
    let error = Journal::open(&path, Site::default()).await.err().unwrap().to_string();
    assert!(error.contains("the file is not there, but its -wal file is"), "{error}");
    assert!(!path.exists());
}

/// A crash while the first journal is made leaves no file of its name.
#[tokio::test]
async fn a_half_made_journal_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("executor.db");
    for suffix in ["", "-wal"] {
        std::fs::write(dir.path().join(format!("executor.db.new{suffix}")), "half").unwrap();
    }
    let (_journal, state) = Journal::open(&path, Site::default()).await.unwrap();
    assert!(state.commands.is_empty());
    assert!(!dir.path().join("executor.db.new").exists());
}
