import { createRequire } from "node:module";

/** The API of OpenTelemetry in the files that the service loads (src/telemetry/tracing.ts). `import` loads others. */
export const otelApi: typeof import("@opentelemetry/api") = createRequire(import.meta.url)("@opentelemetry/api");
