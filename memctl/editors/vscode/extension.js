// Starts `memctl lsp` for Markdown files. All answers are the server's.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function settings() {
  const { diagnostics, links, symbols, inlayHints } = workspace.getConfiguration("memd");
  return { diagnostics, links, symbols, inlayHints };
}

exports.activate = async (context) => {
  const command = workspace.getConfiguration("memd").get("memctl");
  client = new LanguageClient(
    "memd",
    "memd",
    { command, args: ["lsp"] },
    { documentSelector: [{ scheme: "file", language: "markdown" }], initializationOptions: settings() },
  );
  context.subscriptions.push(
    workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("memd")) {
        client.sendNotification("workspace/didChangeConfiguration", { settings: settings() });
      }
    }),
  );
  await client.start();
};

exports.deactivate = () => client?.stop();
