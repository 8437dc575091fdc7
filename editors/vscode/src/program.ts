// The command line of the program, which the settings decide.

export interface Settings {
  /** A path, or a name that is looked up on the PATH. */
  path: string;
  /** Files with facts of a cluster. */
  facts: string[];
}

/** The command that serves an editor that opens `folder`. */
export function commandLine(settings: Settings, folder: string | undefined) {
  return {
    command: settings.path || "multi-attach-guard",
    args: ["lsp", ...settings.facts.flatMap((file) => ["--facts", file])],
    options: { cwd: folder },
  };
}
