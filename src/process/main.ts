import { runReplica } from "./replica.ts";

process.exit(await runReplica(process));
