//! Real editors, with the settings of `docs/editors.md`: each shows the finding of a manifest and
//! repairs it.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::client::{folder, program};
use super::picture::compare;
use super::{CLAIM, WEB};

/// The settings in this language in the documentation.
fn settings(language: &str) -> String {
    let page = fs::read_to_string("docs/editors.md").unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("the page has settings");
    rest.split_once("```").unwrap().0.to_owned()
}

/// Whether the editor can be started. With CI set, every editor must be there.
fn is_installed(editor: &str, arguments: &[&str]) -> bool {
    let started = Command::new(editor).args(arguments).output();
    let is_there = started.is_ok_and(|output| output.status.success());
    assert!(is_there || env::var_os("CI").is_none(), "{editor} is not installed");
    if !is_there {
        eprintln!("SKIPPED: {editor} is not installed.");
    }
    is_there
}

/// Whether a Neovim is there that is new enough for the settings.
fn has_neovim() -> bool {
    let is_new = "+lua vim.cmd(vim.lsp.config and 'q' or 'cq')";
    is_installed("nvim", &["--headless", "-u", "NONE", is_new])
}

/// The editor, which finds the program on its PATH and has no settings of a user.
fn editor(name: &str, root: &Path, home: &Path) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_multi-attach-guard")).parent().unwrap();
    let path = env::join_paths(
        std::iter::once(bin.to_owned()).chain(env::split_paths(&env::var_os("PATH").unwrap())),
    );
    let mut command = Command::new(name);
    command.current_dir(root).env("PATH", path.unwrap()).env("HOME", home);
    for folder in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        command.env(folder, home);
    }
    command
}

/// Starts the editor in a repository with these files: what it said, and the manifest that it left.
fn driven(name: &str, arguments: &[&str], files: &[(&str, &str)]) -> (String, String) {
    let (_kept, root) = folder(&[&[("claim.yaml", CLAIM), ("web.yaml", WEB)], files].concat());
    fs::create_dir(root.join(".git")).unwrap();
    let (_home, home) = folder(&[]);
    let output = editor(name, &root, &home).args(arguments).output().unwrap();
    (said(&output), fs::read_to_string(root.join("web.yaml")).unwrap())
}

/// The text that `check --fix` makes.
fn fixed() -> String {
    let (_kept, root) = folder(&[("claim.yaml", CLAIM), ("web.yaml", WEB)]);
    program(&root, &["check", "--render", "never", "--fix", "."]).output().unwrap();
    fs::read_to_string(root.join("web.yaml")).unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|stream| String::from_utf8_lossy(stream)).concat()
}

#[test]
fn neovim_shows_and_repairs() {
    const DRIVE: &str = "
vim.cmd.edit('web.yaml')
local function wait(is_so) assert(vim.wait(60000, is_so, 10), 'Neovim waited in vain') end
wait(function() return #vim.diagnostic.get(0) > 0 end)
local found = vim.diagnostic.get(0)[1]
io.stdout:write(found.code, ' ', found.severity, ' ', found.lnum, ':', found.col, '\\n')
vim.api.nvim_win_set_cursor(0, {found.lnum + 1, found.col})
local client = vim.lsp.get_clients({bufnr = 0})[1]
local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
local answer = client:request_sync('textDocument/hover', params, 60000, 0)
io.stdout:write(answer.result.contents.value, '\\n')
vim.lsp.buf.code_action({apply = true, filter = function(action) return action.isPreferred end})
wait(function() return vim.bo.modified end)
wait(function() return #vim.diagnostic.get(0) == 0 end)
vim.cmd.write()
vim.cmd.quit()
";
    if !has_neovim() {
        return;
    }
    let files = [("init.lua", &*settings("lua")), ("drive.lua", DRIVE)];
    let (said, left) = driven("nvim", &["--headless", "-u", "init.lua", "-S", "drive.lua"], &files);
    // Neovim counts bytes: a pair of surrogates is 4.
    let byte = WEB.lines().nth(3).unwrap().find("type: RollingUpdate").unwrap();
    assert!(said.contains(&format!("rolling-update-overlap 1 3:{byte}")), "{said}");
    assert!(said.contains("At most 2 at once"), "{said}");
    assert_eq!(left, fixed(), "{said}");
}

#[test]
fn the_picture_shows_neovim() {
    // Prints the screen as a terminal of 80 columns would show it. A Neovim without a terminal tells
    // no colours, so what has no number of a line is red, as in its default colours.
    const DRIVE: &str = r"
vim.o.columns, vim.o.lines, vim.o.cmdheight, vim.o.laststatus = 80, 30, 0, 0
vim.o.number = true
vim.diagnostic.config({virtual_lines = {format = function(found)
  local lines = {''}
  for word in (found.code .. ': ' .. found.message):gmatch('%S+') do
    if #lines[#lines] + #word > 66 then lines[#lines + 1] = '' end
    lines[#lines] = lines[#lines] .. word .. ' '
  end
  return table.concat(lines, '\n')
end}})
vim.cmd.edit('web.yaml')
assert(vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 10), 'Neovim waited in vain')
vim.api.nvim_win_set_cursor(0, {13, 0})
vim.cmd('normal! zt')
vim.cmd('redraw!')
for row = 1, vim.o.lines do
  local line = ''
  for column = 1, vim.o.columns do line = line .. vim.fn.screenstring(row, column) end
  io.stdout:write((line:gsub('^E', '\27[91mE\27[0m'):gsub('^      .*', '\27[91m%0\27[0m')), '\n')
end
vim.cmd('quit!')
";
    if !has_neovim() {
        return;
    }
    let with_facts = settings("lua").replace("'lsp' }", "'lsp', '--facts', 'facts.yaml' }");
    let read = |file| fs::read_to_string(file).unwrap();
    let files = [
        ("init.lua", &*with_facts),
        ("drive.lua", DRIVE),
        ("web.yaml", &read("examples/web.yaml")),
        ("facts.yaml", &read("examples/facts/cluster.yaml")),
    ];
    let (said, _) = driven("nvim", &["--headless", "-u", "init.lua", "-S", "drive.lua"], &files);
    compare("editor", "A finding in Neovim", &said);
}

#[test]
fn emacs_shows_and_repairs() {
    const DRIVE: &str = r#"
(define-derived-mode yaml-mode text-mode "YAML")
(find-file "web.yaml")
(yaml-mode)
(setq eglot-sync-connect t eglot-confirm-server-initiated-edits nil)
(call-interactively 'eglot)
(defun wait (is-so)
  (let ((end (+ (float-time) 60)))
    (while (not (funcall is-so))
      (when (> (float-time) end) (error "Emacs waited in vain"))
      (accept-process-output nil 0.05))))
(wait (lambda () (progn (flymake-start) (flymake-diagnostics))))
(princ (flymake-diagnostic-text (car (flymake-diagnostics))))
(goto-char (flymake-diagnostic-beg (car (flymake-diagnostics))))
(let* ((actions (jsonrpc-request (eglot--current-server-or-lose) :textDocument/codeAction
         (list :textDocument (eglot--TextDocumentIdentifier)
               :range (list :start (eglot--pos-to-lsp-position) :end (eglot--pos-to-lsp-position))
               :context '(:diagnostics []))))
       (preferred (seq-find (lambda (action) (eq t (plist-get action :isPreferred))) actions)))
  (eglot--apply-workspace-edit (plist-get preferred :edit)))
(save-buffer)
(eglot-shutdown (eglot--current-server-or-lose))
"#;
    if !is_installed(
        "emacs",
        &["--batch", "--eval", "(progn (package-initialize) (require 'eglot))"],
    ) {
        return;
    }
    let settings = ["(package-initialize)\n", &settings("elisp")].concat();
    let files = [("init.el", &*settings), ("drive.el", DRIVE)];
    let (said, left) = driven("emacs", &["--batch", "-l", "init.el", "-l", "drive.el"], &files);
    assert!(said.contains("Deployment web: claim \"data\""), "{said}");
    assert_eq!(left, fixed(), "{said}");
}

#[test]
fn the_extension_of_visual_studio_code_starts_the_program() {
    let extension = Path::new("editors/vscode");
    if !extension.join("node_modules").exists() {
        assert!(env::var_os("CI").is_none(), "run npm ci in editors/vscode");
        eprintln!("SKIPPED: npm ci was not run in editors/vscode.");
        return;
    }
    let mut npm = Command::new("npm");
    npm.args(["test", "--silent"]).current_dir(extension);
    let tested = npm.env("MULTI_ATTACH_GUARD", env!("CARGO_BIN_EXE_multi-attach-guard")).output();
    let output = tested.unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
