import { test as base } from "vitest";
import { testDatabase } from "./database.ts";
import { fixture, type Lifetime, lifetimeOf } from "./lifetime.ts";
import { startService } from "./service.ts";
import { type Reply, startVendor } from "./vendors.ts";

/**
 * `test` with what most files share. The tests of a file share one service, one database and one vendor, which start
 * when a test first names them. A test must leave them as it found them.
 */
export const test = base
  /** The lifetime of the test, for helpers that start something. */
  .extend("t", ({ onTestFinished }): Lifetime => ({ onTestFinished }))
  .extend("database", { scope: "file" }, fixture(testDatabase))
  /** Further environment of the service; a file may replace it by extending `env`. */
  .extend("env", { scope: "file" }, {} as Record<string, string>)
  /** What the vendor does unless a test says otherwise; a file may replace it too. */
  .extend("script", { scope: "file" }, {} as Reply)
  .extend("vendorOfFile", { scope: "file" }, async ({ script }, { onCleanup }) => {
    const vendor = await startVendor("openai", script);
    onCleanup(() => vendor.close());
    return vendor;
  })
  /** The one vendor of the service. Each test finds it without calls and with the script of the file. */
  .extend("vendor", ({ vendorOfFile }) => {
    vendorOfFile.reset();
    return vendorOfFile;
  })
  .extend("serviceOfFile", { scope: "file" }, ({ database, vendorOfFile, env }, { onCleanup }) =>
    startService(lifetimeOf(onCleanup), { databaseUrl: database.url, env: { ...vendorOfFile.env, ...env } }),
  )
  /** The service. Its vendor is reset before each test. */
  .extend("service", ({ serviceOfFile, vendorOfFile }) => {
    vendorOfFile.reset();
    return serviceOfFile;
  });

/** Environment of a service that has no vendor, and answers from the offline models. */
export const OFFLINE = { OPENAI_API_KEY: "" };
