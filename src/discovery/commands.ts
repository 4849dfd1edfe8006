/** An installed package has JavaScript, and no scripts of npm where it was installed; a clone has TypeScript. */
const isPackage = import.meta.filename.endsWith(".js");

/** How to start the command line and the service, for messages. */
export const COMMANDS = isPackage
  ? { chorus: "npx chorus", start: "npx chorus start" }
  : { chorus: "npm run chorus --", start: "npm start" };
