use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::Duration;

use tempfile::TempDir;

use super::*;

const NAME: &str = "name";

/// A person's folder below a new one, and where it lies.
fn folder() -> (TempDir, CacheFolder, PathBuf) {
    let above = tempfile::tempdir().unwrap();
    let folder = CacheFolder::of_person(Some(above.path().into()), None).unwrap();
    let place = above.path().join("clicklink/renders");
    (above, folder, place)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn names(place: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Why the folder is refused.
fn refusal(folder: &CacheFolder) -> String {
    folder.open().map(|_| ()).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_this_users_alone_and_is_read_again() {
    let (_above, folder, place) = folder();
    assert_eq!(folder.open().unwrap().read(NAME).unwrap(), None);
    for content in ["one", "another"] {
        folder.open().unwrap().write(NAME, content.as_bytes()).unwrap();
        assert_eq!(folder.open().unwrap().read(NAME).unwrap().unwrap(), content.as_bytes());
    }
    assert_eq!(names(&place), [NAME]);
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(fs::metadata(place.join(NAME)).unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn where_it_lies_is_the_users_own_or_the_services() {
    let person = |cache: &str, home: &str| {
        let folder = CacheFolder::of_person(Some(cache.into()), Some(home.into()))?;
        Some(folder.below.iter().fold(folder.above, |path, name| path.join(name)).display().to_string())
    };
    assert_eq!(person("/cache", "/home/a").as_deref(), Some("/cache/clicklink/renders"));
    for ignored in ["", "relative"] {
        assert_eq!(person(ignored, "/home/a").as_deref(), Some("/home/a/.cache/clicklink/renders"));
        assert_eq!(person(ignored, ignored), None);
    }
    assert!(CacheFolder::of_person(None, None).is_none());
    let service = |given: Option<&str>| CacheFolder::of_service(given.map(OsString::from), Path::new("/state")).above;
    assert_eq!(service(Some("/var/cache/clicklink")), Path::new("/var/cache/clicklink"));
    assert_eq!([service(None), service(Some(""))], [Path::new("/state"), Path::new("/state")]);
}

#[test]
fn a_folder_that_others_may_use_is_refused_at_the_next_use() {
    let (_above, folder, place) = folder();
    folder.open().unwrap().write(NAME, b"content").unwrap();
    for mode in [0o777, 0o1777, 0o770, 0o720, 0o702, 0o750, 0o705, 0o701] {
        set_mode(&place, mode);
        assert!(refusal(&folder).ends_with(&format!("its mode is {mode:o}")), "{}", refusal(&folder));
    }
    set_mode(&place, 0o700);
    assert!(folder.open().unwrap().read(NAME).unwrap().is_some());
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    let (above, mine, place) = folder();
    mine.open().unwrap();
    let uid = geteuid().as_raw();
    let theirs = CacheFolder { user: uid + 1, ..mine.clone() };
    assert!(refusal(&theirs).ends_with(&format!("belongs to user {uid}, not to user {}", uid + 1)), "{}", refusal(&theirs));
    if uid != 0 {
        println!("not covered here: folders that really belong to others");
        return;
    }
    let nobody = 65_534;
    for theirs in [place.as_path(), place.parent().unwrap(), above.path()] {
        std::os::unix::fs::chown(theirs, Some(nobody), None).unwrap();
        let refusal = refusal(&mine);
        assert!(refusal.starts_with(&theirs.display().to_string()) && refusal.contains("belongs to user 65534"), "{refusal}");
        std::os::unix::fs::chown(theirs, Some(0), None).unwrap();
    }
}

#[test]
fn root_makes_nothing_in_the_home_of_another() {
    if geteuid().as_raw() != 0 {
        println!("not covered here: root with the home of another");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(home.path(), Some(65_534), None).unwrap();
    let folder = CacheFolder::of_person(None, Some(home.path().into())).unwrap();
    assert!(refusal(&folder).contains("belongs to user 65534, not to user 0"), "{}", refusal(&folder));
    assert_eq!(names(home.path()), [""; 0]);
}

#[test]
fn what_lies_at_its_place_and_is_no_folder_is_refused() {
    for step in ["clicklink", "clicklink/renders"] {
        let (above, folder, _) = folder();
        let (elsewhere, place) = (above.path().join("elsewhere"), above.path().join(step));
        fs::create_dir_all(elsewhere.join("renders")).unwrap();
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(&elsewhere, &place).unwrap();
        assert!(refusal(&folder).starts_with(&place.display().to_string()), "{}", refusal(&folder));
        fs::remove_file(&place).unwrap();
        fs::write(&place, "a file").unwrap();
        assert!(refusal(&folder).starts_with(&place.display().to_string()), "{}", refusal(&folder));
    }
    let nowhere = CacheFolder::of_person(Some("/nowhere".into()), None).unwrap();
    assert!(refusal(&nowhere).starts_with("/nowhere: "), "{}", refusal(&nowhere));
}

#[test]
fn a_file_that_is_not_this_users_own_is_not_read_and_is_replaced() {
    let (above, folder, place) = folder();
    let opened = folder.open().unwrap();
    let (file, elsewhere) = (place.join(NAME), above.path().join("elsewhere"));
    fs::write(&elsewhere, "planted").unwrap();
    set_mode(&elsewhere, 0o600);
    let planted = |mode, owner| {
        fs::write(&file, "planted").unwrap();
        set_mode(&file, mode);
        std::os::unix::fs::chown(&file, owner, None).unwrap();
    };
    let open_to_others = || planted(0o644, None);
    let linked = || symlink(&elsewhere, &file).unwrap();
    let pipe = || rustix::fs::mkfifoat(rustix::fs::CWD, &file, Mode::RUSR | Mode::WUSR).unwrap();
    let of_nobody = || planted(0o600, Some(65_534));
    let mut cases: Vec<(&str, &dyn Fn())> =
        vec![("its mode is 644", &open_to_others), ("symbolic links", &linked), ("no plain file", &pipe)];
    if geteuid().as_raw() == 0 {
        cases.push(("belongs to user 65534", &of_nobody));
    }
    for (expected, plant) in cases {
        plant();
        let error = opened.read(NAME).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        opened.write(NAME, b"ours").unwrap();
        assert_eq!(opened.read(NAME).unwrap().unwrap(), b"ours", "{expected}");
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(fs::read(&elsewhere).unwrap(), b"planted");
}

#[test]
fn a_write_that_fails_leaves_nothing_behind() {
    let (_above, folder, place) = folder();
    let opened = folder.open().unwrap();
    fs::create_dir(place.join(NAME)).unwrap();
    assert!(opened.write(NAME, b"content").is_err());
    assert_eq!(names(&place), [NAME]);
}

#[test]
fn writers_side_by_side_leave_one_whole_file() {
    let (_above, folder, place) = folder();
    let content = |n: u8| vec![n; 10_000 + usize::from(n) * 1_000];
    std::thread::scope(|scope| {
        for n in 0..8 {
            let folder = &folder;
            scope.spawn(move || {
                for _ in 0..20 {
                    folder.open().unwrap().write(NAME, &content(n)).unwrap();
                    let read = folder.open().unwrap().read(NAME).unwrap().unwrap();
                    assert_eq!(read, content(read[0]));
                }
            });
        }
    });
    assert_eq!(names(&place), [NAME]);
}

/// Says when a file was used: so many seconds ago.
fn used(path: &Path, seconds_ago: u64) {
    File::open(path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(seconds_ago)).unwrap();
}

#[test]
fn what_was_used_longest_ago_goes_when_there_is_no_room() {
    for limits in [Limits { bytes: 30, files: 100 }, Limits { bytes: 1_000, files: 3 }] {
        let (_above, folder, place) = folder();
        let folder = CacheFolder { limits, ..folder };
        let opened = folder.open().unwrap();
        for (name, seconds_ago) in [("a", 50), ("b", 40), (".left-by-a-killed-process", 30)] {
            opened.write(name, &[b'x'; 10]).unwrap();
            used(&place.join(name), seconds_ago);
        }
        assert!(opened.read("a").unwrap().is_some());
        opened.write("c", &[b'x'; 10]).unwrap();
        assert_eq!(names(&place), [".left-by-a-killed-process", "a", "c"]);
        opened.write("d", &[b'x'; 10]).unwrap();
        assert_eq!(names(&place), ["a", "c", "d"]);
    }
}

#[test]
fn what_has_no_room_at_all_is_not_written() {
    let (_above, folder, place) = folder();
    let folder = CacheFolder { limits: Limits { bytes: 30, files: 3 }, ..folder };
    assert!(folder.open().unwrap().write("e", &[b'x'; 31]).is_err());
    assert_eq!(names(&place), [""; 0]);
}
