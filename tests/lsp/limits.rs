//! Large documents and folders, and links out of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use super::*;

/// The most memory of the program, in KiB.
const MOST_MEMORY: u64 = 300 << 10;

/// The most memory that the program has had, in KiB.
fn memory(editor: &Editor) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", editor.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_folder_of_ten_thousand_files_is_searched_from_the_document_outwards() {
    let (_kept, root) = folder(&[]);
    for number in 0..100 {
        let inner = root.join(number.to_string());
        fs::create_dir(&inner).unwrap();
        for file in 0..99 {
            let name = format!("{number}-{file}");
            let text = CLAIM.replace("name: data", &format!("name: {name}"));
            fs::write(inner.join(format!("{file}.yaml")), text).unwrap();
        }
        fs::write(inner.join("claim.yaml"), CLAIM).unwrap();
    }
    let web = root.join("57/web.yaml");
    let mut editor = Editor::start(&root, &[]);
    let start = Instant::now();
    editor.open(&web, WEB);
    let found = editor.next_published(&web);
    println!("10,000 files: first answer after {} ms", start.elapsed().as_millis());
    assert_eq!(found[0]["code"], "rolling-update-overlap");
    let used = memory(&editor);
    println!("10,000 files: {} MiB", used >> 10);
    assert!(used < MOST_MEMORY, "{used} KiB");
    editor.end();
}

#[test]
fn large_documents_are_answered() {
    let (_kept, root) = folder(&[("claim.yaml", CLAIM)]);
    let web = root.join("web.yaml");
    // 1,000 lines.
    let filled = |lines: usize| {
        let value = "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  selector:\n    app: web\n  ports:\n  - port: 80\n";
        [WEB, &value.repeat(lines / 10)].concat()
    };
    let mut editor = Editor::start(&root, &[]);
    for (name, lines, times) in [("1,000 lines", 1_000, 20), ("5 MB", 500_000, 2)] {
        let text = filled(lines);
        editor.open(&web, &text);
        assert_eq!(editor.next_published(&web).len(), 1, "{name}");
        let place = at(WEB, "RollingUpdate");
        let mut end = place.clone();
        for turn in 0..times {
            let (old, new) = if turn % 2 == 0 { (13, "Recreate") } else { (8, "RollingUpdate") };
            end["character"] = (place["character"].as_u64().unwrap() + old).into();
            let start = Instant::now();
            editor.change(&web, &json!([{"range": {"start": place, "end": end}, "text": new}]));
            let found = editor.next_published(&web);
            println!("{name}: a change is judged after {} ms", start.elapsed().as_millis());
            assert_eq!(found.len(), turn % 2, "{name}");
        }
        println!("{name}, {} bytes: {} MiB", text.len(), memory(&editor) >> 10);
        editor.close(&web);
        editor.shown(&web);
    }
    editor.end();
}

#[test]
fn links_out_of_the_folder_and_files_that_are_no_text_are_left_alone() {
    let (_outside, elsewhere) = folder(&[("claim.yaml", CLAIM)]);
    let (_kept, root) = folder(&[("web.yaml", WEB)]);
    symlink(&elsewhere, root.join("folder")).unwrap();
    symlink(elsewhere.join("claim.yaml"), root.join("claim.yaml")).unwrap();
    symlink("/proc/self/environ", root.join("environ.yaml")).unwrap();
    fs::write(root.join("latin1.yaml"), b"kind: Pod\nname: caf\xe9\n").unwrap();
    fs::write(root.join("binary.yaml"), b"kind: Pod\n\0").unwrap();
    let web = root.join("web.yaml");
    let mut editor = Editor::start(&root, &[]);
    editor.open(&web, WEB);
    let found = editor.shown(&web);
    assert_eq!(found[0]["code"], "unresolved-claim");
    editor.end();
}
