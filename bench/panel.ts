import type { Environment } from "./environment.ts";
import { openAiTarget } from "./requests.ts";
import { type Rounds, type Sample, takeTurns } from "./rounds.ts";

/** Names of the contestants, for the report. */
export const PANEL = { one: "one model", agree: "panel that agrees", differ: "panel and judge", relay: "bare relay" };

/** Measures panels of three at effort `high` beside one model of the same process, and the bare relay. */
export async function measurePanel({ startPanel, startRelay }: Environment, how: Rounds): Promise<Sample[]> {
  await using relay = await startRelay();
  await using panel = await startPanel();
  const { server, target } = panel;
  return await takeTurns(
    "panel",
    [
      { name: PANEL.relay, server: relay.server, target: openAiTarget(relay.server.port, "unary") },
      { name: PANEL.one, server, target: target("alone") },
      { name: PANEL.agree, server, target: target("agree") },
      { name: PANEL.differ, server, target: target("differ") },
    ],
    how,
  );
}
