/**
 * What is used of node:http at run time. `import` would read each of its members, and three of them load the whole of
 * Node's `fetch` and WebSocket: 50 ms of processor time at the start of the service, which uses neither.
 */
export const { createServer, maxHeaderSize, STATUS_CODES } = process.getBuiltinModule("node:http");
