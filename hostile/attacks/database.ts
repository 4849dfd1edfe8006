import { setTimeout as sleep } from "node:timers/promises";
import type { AttackScenario } from "../scenario.ts";

/** Postgres is away. The neighbour cannot be served, is told so at once, and is served again afterwards. */
export const DATABASE: readonly AttackScenario[] = [
  {
    name: "database-stopped",
    what: "Postgres stops for 4 s",
    seconds: 10,
    neighbour: "told",
    async during({ database }) {
      await sleep(1_000);
      await database.stop();
      await sleep(4_000);
      await database.start();
      return [];
    },
  },
  {
    name: "database-frozen",
    what: "Postgres accepts connections and answers nothing for 4 s",
    seconds: 10,
    neighbour: "told",
    async during({ database }) {
      await sleep(1_000);
      await database.freeze();
      await sleep(4_000);
      database.thaw();
      return [];
    },
  },
];
