// Starts `multi-attach-guard lsp` for YAML and JSON files.

import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";
import { commandLine } from "./program";

const INSTALL =
  "https://github.com/multi-attach-guard/multi-attach-guard/blob/main/docs/install.md#the-program";

let client: LanguageClient | undefined;
// A second start must not begin before the first has ended.
let pending: Promise<void> = Promise.resolve();

/** The command line that the settings ask for. */
function program(): ServerOptions {
  const settings = vscode.workspace.getConfiguration("multiAttachGuard");
  const [path, facts] = [settings.get("path", ""), settings.get<string[]>("facts", [])];
  return commandLine({ path, facts }, vscode.workspace.workspaceFolders?.[0]?.uri.fsPath);
}

async function start(manifests: vscode.FileSystemWatcher): Promise<void> {
  const options: LanguageClientOptions = {
    documentSelector: ["yaml", "json"].map((language) => ({ scheme: "file", language })),
    synchronize: { fileEvents: manifests },
  };
  const started = new LanguageClient("multiAttachGuard", "multi-attach-guard", program(), options);
  try {
    await started.start();
    client = started;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const open = "How to install it";
    const message = `multi-attach-guard does not start: ${reason}. Check the setting multiAttachGuard.path.`;
    void vscode.window.showErrorMessage(message, open).then((chosen) => {
      if (chosen === open) {
        void vscode.env.openExternal(vscode.Uri.parse(INSTALL));
      }
    });
  }
}

async function stop(): Promise<void> {
  const stopped = client;
  client = undefined;
  await stopped?.dispose();
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const manifests = vscode.workspace.createFileSystemWatcher("**/*.{yaml,yml,json}");
  const restart = () => {
    pending = pending.then(stop).then(() => start(manifests));
    return pending;
  };
  context.subscriptions.push(
    manifests,
    vscode.commands.registerCommand("multiAttachGuard.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) =>
      change.affectsConfiguration("multiAttachGuard") ? restart() : undefined,
    ),
  );
  await restart();
}

export async function deactivate(): Promise<void> {
  await pending;
  await stop();
}
