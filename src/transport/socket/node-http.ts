/**
 * What of node:http has a value. `import` reads each of its members, of which three load the whole of Node's `fetch`
 * and WebSocket: 50 ms of processor time at the start of the service, which uses neither.
 */
export const { createServer, maxHeaderSize, STATUS_CODES } = process.getBuiltinModule("node:http");
