//! The page in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{out, run, shop};

/// A picture of `page`, taken by Chromium, in a folder that remains after the test so that people
/// can look at it.
fn picture(page: &Path, name: &str, switches: &str) -> Vec<u8> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let home = tempfile::tempdir().unwrap();
    let browser = Command::new("chromium")
        .args("--headless --no-sandbox --disable-gpu --hide-scrollbars".split(' '))
        .args(["--no-first-run", "--window-size=1100,1500"])
        .arg(format!("--user-data-dir={}", home.path().display()))
        .arg(format!("--screenshot={}", file.display()))
        .args(switches.split_whitespace())
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(browser.status.success(), "{browser:?}");
    fs::read(&file).unwrap()
}

#[test]
fn a_browser_shows_the_page_in_light_and_dark() {
    if Command::new("chromium").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "chromium is not installed");
        eprintln!("SKIPPED: chromium is not installed.");
        return;
    }
    let folder = shop();
    let output = run(&folder, &["check", "deploy", "--format", "html"]);
    assert!(out(&output).contains("Deployment web"), "{output:?}");
    let page = folder.path().join("report.html");
    fs::write(&page, &output.stdout).unwrap();
    let light = picture(&page, "report-light.png", "");
    let switches = "--force-dark-mode --blink-settings=preferredColorScheme=0";
    let dark = picture(&page, "report-dark.png", switches);
    for image in [&light, &dark] {
        assert!(image.starts_with(b"\x89PNG"));
        // A blank page of that size compresses to less than a tenth of this.
        assert!(image.len() > 50_000, "{} bytes", image.len());
    }
    assert_ne!(light, dark);
}
