//! Archives, good and bad.

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;

/// A gzipped tar of raw entries: path, type, content.
fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, kind, bytes) in entries {
        let mut header = Header::new_gnu();
        // Written by hand: the library refuses the names that are to be refused here.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

const FILE: EntryType = EntryType::Regular;
const CHART: (&str, EntryType, &[u8]) = ("c/Chart.yaml", FILE, b"name: c");

fn refusal(entries: &[(&str, EntryType, &[u8])]) -> String {
    let mut all = vec![CHART];
    all.extend_from_slice(entries);
    check(&archive(&all)).unwrap_err().to_string()
}

#[test]
fn a_chart_as_helm_packs_it() {
    let sub = archive(&[("s/Chart.yaml", FILE, b"name: s")]);
    let entries = [("c/", EntryType::Directory, &b""[..]), CHART, ("c/templates/x.yaml", FILE, b"a"), ("c/charts/s-1.tgz", FILE, &sub)];
    check(&archive(&entries)).unwrap();
    // What only looks like an archive is a file like any other where Helm does not unpack it.
    check(&archive(&[CHART, ("c/files/data.tgz", FILE, b"no archive"), ("c/charts/_x.tgz", FILE, b"no archive")])).unwrap();
}

#[test]
fn what_is_refused_is_named() {
    let nested = archive(&[("s/Chart.yaml", FILE, b""), ("s/link", EntryType::Symlink, b"")]);
    for (entry, expected) in [
        (("/etc/passwd", FILE, &b"x"[..]), "\"/etc/passwd\""),
        (("c/../../x", FILE, b"x"), "\"c/../../x\""),
        (("c/./x", FILE, b"x"), "\"c/./x\""),
        (("c\\x", FILE, b"x"), "not a file name"),
        (("c/C:/x", FILE, b"x"), "not a file name"),
        (("c/a\nb", FILE, b"x"), "not a file name"),
        (("c/link", EntryType::Symlink, b""), "c/link: neither a file nor a folder"),
        (("c/link", EntryType::Link, b""), "c/link: neither"),
        (("c/pipe", EntryType::Fifo, b""), "c/pipe: neither"),
        (("c/device", EntryType::Char, b""), "c/device: neither"),
        (("c/disk", EntryType::Block, b""), "c/disk: neither"),
        (("c/sparse", EntryType::Continuous, b"x"), "c/sparse: neither"),
        (("../c/x", FILE, b"x"), "\"../c/x\""),
        (("c/templates/..", EntryType::Directory, b""), "\"c/templates/..\""),
        (("c//x", FILE, b"x"), "\"c//x\""),
        (("c/\u{7f}", FILE, b"x"), "not a file name"),
        (("c/Chart.yaml", FILE, b"x"), "c/Chart.yaml: the file is there twice"),
        (("d/x", FILE, b"x"), "d/x: the file lies outside"),
        (("x", FILE, b"x"), "x: the file lies outside"),
        (("c/charts/s.tgz", FILE, &nested), "s/link: neither"),
        (("c/charts/s.tgz", FILE, b"no archive"), "c/charts/s.tgz: the archive is not readable"),
    ] {
        let problem = refusal(&[entry]);
        assert!(problem.contains(expected), "{problem}");
    }
    assert!(matches!(check(&archive(&[("c/x", FILE, b"")])), Err(ArchiveError::NoChart)));
    assert!(matches!(check(&archive(&[])), Err(ArchiveError::NoChart)));
    assert!(matches!(check(&archive(&[("c/Chart.yaml", EntryType::Directory, b"")])), Err(ArchiveError::NoChart)));
    assert!(matches!(check(b"no archive"), Err(ArchiveError::Unreadable { .. })));
}

/// Names that do not stand in an entry's own header: what comes before it says them.
#[test]
fn names_in_extensions_are_names() {
    let with = |name: &[u8], kind: EntryType| {
        let record = |key: &str, value: &[u8]| {
            let rest = key.len() + value.len() + 3;
            let length = (rest + 1..).find(|length| length.to_string().len() + rest == *length).unwrap();
            [format!("{length} {key}=").as_bytes(), value, b"\n"].concat()
        };
        let extension = if kind == EntryType::XHeader { record("path", name) } else { [name, b"\0"].concat() };
        check(&archive(&[CHART, ("extension", kind, &extension), ("c/harmless", FILE, b"x")]))
    };
    let long = format!("c/{}", "x".repeat(MAX_PATH - 2));
    for kind in [EntryType::XHeader, EntryType::GNULongName] {
        with(long.as_bytes(), kind).unwrap();
        for name in [b"/etc/passwd".as_slice(), b"c/../../x", b"c\\x", b"c/\xff\xfe", b"c/a\0b", format!("{long}x").as_bytes()] {
            let refused = with(name, kind);
            assert!(matches!(refused, Err(ArchiveError::Name(_))), "{kind:?} {}: {refused:?}", String::from_utf8_lossy(name));
        }
    }
}

#[test]
fn a_damaged_archive_is_unreadable() {
    let whole = archive(&[CHART, ("c/templates/x.yaml", FILE, &[b'x'; 4096])]);
    check(&whole).unwrap();
    let mut broken = whole.clone();
    let middle = broken.len() / 2;
    broken[middle] ^= 0xff;
    let plain_tar = vec![0_u8; 1024];
    for (what, bytes) in [("cut", &whole[..whole.len() / 2]), ("empty", &[]), ("changed", &broken), ("not gzipped", &plain_tar)] {
        let refused = check(bytes);
        assert!(matches!(refused, Err(ArchiveError::Unreadable { .. })), "{what}: {refused:?}");
    }
}

#[test]
fn sizes_are_bounded_while_unpacking() {
    let zeros = vec![0_u8; 40 << 20];
    let bomb = archive(&[("s/Chart.yaml", FILE, b""), ("s/zeros", FILE, &zeros)]);
    assert!(bomb.len() < 1 << 20);
    check(&archive(&[CHART, ("c/charts/s.tgz", FILE, &bomb)])).unwrap();
    let two = [CHART, ("c/charts/s.tgz", FILE, &bomb[..]), ("c/charts/t.tgz", FILE, &bomb[..])];
    assert!(matches!(check(&archive(&two)), Err(ArchiveError::Unpacked(path)) if path == "s/zeros"));
    assert!(matches!(check(&vec![0; 11 << 20]), Err(ArchiveError::Compressed(_))));

    let names: Vec<String> = (0..MAX_FILES).map(|i| format!("c/templates/{i}")).collect();
    let many: Vec<_> = std::iter::once(CHART).chain(names.iter().map(|name| (name.as_str(), FILE, &b""[..]))).collect();
    assert!(matches!(check(&archive(&many)), Err(ArchiveError::Files)));

    let mut deep = archive(&[("c/Chart.yaml", FILE, b"")]);
    for _ in 0..=MAX_NESTED {
        deep = archive(&[CHART, ("c/charts/d.tgz", FILE, &deep)]);
    }
    assert!(matches!(check(&deep), Err(ArchiveError::Nested(_))));
}
