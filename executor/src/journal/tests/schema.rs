//! Files of other versions, and of other programs.

use super::*;

async fn made(path: &Path, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn an_older_file_is_migrated_and_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("executor.db");
    made(&path, include_str!("version_1.sql")).await;
    for _ in 0..2 {
        let (mut journal, state) = Journal::open(&path, Site::default()).await.unwrap();
        let statuses: Vec<_> = state.commands.values().map(|entry| (entry.command.sequence, entry.status, entry.acknowledged)).collect();
        let expected = [(1, CommandStatus::Failed, true), (2, CommandStatus::Running, false), (3, CommandStatus::Pending, false)];
        assert_eq!(statuses, expected);
        assert_eq!((state.platform.last_sequence, state.platform.forgotten_through, state.platform.attempts), (3, 0, 1));
        assert!(state.jobs_done.contains(&(installation(9), job())));
        for table in ["commands", "platform", "jobs_done"] {
            let query = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE checksum IS NULL"));
            assert_eq!(sqlx::query_scalar::<_, i64>(query).fetch_one(&mut journal.connection).await.unwrap(), 0, "{table}");
        }
    }
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[tokio::test]
async fn a_newer_file_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("executor.db");
    drop(Journal::open(&path, Site::default()).await.unwrap());
    made(&path, "INSERT INTO _sqlx_migrations VALUES (99, 'later', '2027-01-01', TRUE, x'00', 1)").await;
    let before = std::fs::read(&path).unwrap();
    let error = Journal::open(&path, Site::default()).await.err().unwrap();
    assert!(matches!(error, JournalError::Newer { found: 99, known: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("install that version again, or a later one"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_alone() {
    for sql in ["PRAGMA application_id = 7; CREATE TABLE t (x)", "PRAGMA journal_mode = WAL; CREATE TABLE t (x)"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("executor.db");
        made(&path, sql).await;
        let before = std::fs::read(&path).unwrap();
        let error = Journal::open(&path, Site::default()).await.err().unwrap();
        assert!(matches!(error, JournalError::Foreign(_)), "{error:?}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{sql}");
    }
}
