import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const DIST = join(import.meta.dirname, "dist");

/** Writes a Brotli and a gzip file beside each script and style: to compress them would take the service 10 ms. */
function compressed(): Plugin {
  return {
    name: "compressed",
    writeBundle(_, bundle) {
      for (const name of Object.keys(bundle).filter((file) => /\.(js|css)$/.test(file))) {
        const file = join(DIST, name);
        const text = readFileSync(file);
        writeFileSync(`${file}.br`, brotliCompressSync(text));
        writeFileSync(`${file}.gz`, gzipSync(text, { level: 9 }));
      }
    },
  };
}

/** The console is static files below /console, with a Content-Security-Policy that allows no inline code. */
export default defineConfig({
  root: import.meta.dirname,
  base: "/console/",
  plugins: [compressed()],
  build: {
    // The pages of owners and those of operators share no session, so neither loads the code of the other.
    rolldownOptions: {
      input: ["index.html", "operator.html"].map((name) => join(import.meta.dirname, name)),
      // One file for the small parts that pages share: many small ones compress badly.
      output: {
        codeSplitting: { groups: [{ name: "parts", test: /src\/parts\/(?!chart)|lucide/, minShareCount: 2 }] },
      },
      // The first start builds the console, and its output is for the person who waits for it.
      checks: { bundlerTimings: false },
    },
    outDir: DIST,
    emptyOutDir: true,
    // One style sheet: pages that are loaded later then need no code that loads theirs.
    cssCodeSplit: false,
    // Only links in the pages: the polyfill for old browsers would be inline code.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
