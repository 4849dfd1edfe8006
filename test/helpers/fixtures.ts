import { test as base } from "vitest";
import { testDatabase } from "./database.ts";
import { fixture, type Lifetime, lifetimeOf } from "./lifetime.ts";
import { startService } from "./service.ts";
import { type Reply, startVendor } from "./vendors.ts";

/**
 * `test` with the fixtures that most files need. The tests of a file share one service, one database and one vendor,
 * which start when a test first uses them. A test must leave them unchanged.
 */
export const test = base
  /** The lifetime of the test, for helpers that start something. */
  .extend("t", ({ onTestFinished }): Lifetime => ({ onTestFinished }))
  .extend("database", { scope: "file" }, fixture(testDatabase))
  /** Further environment of the service; a file may replace it by extending `env`. */
  .extend("env", { scope: "file" }, {} as Record<string, string>)
  /** Default reply of the vendor; a file may replace it by extending `script`. */
  .extend("script", { scope: "file" }, {} as Reply)
  .extend("vendorOfFile", { scope: "file" }, async ({ script }, { onCleanup }) => {
    const vendor = await startVendor("openai", script);
    onCleanup(() => vendor.close());
    return vendor;
  })
  /** The vendor of the service. Before each test its calls are cleared and its script is reset. */
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

/** Environment of a service without a vendor, which uses the offline models. */
export const OFFLINE = { OPENAI_API_KEY: "" };
