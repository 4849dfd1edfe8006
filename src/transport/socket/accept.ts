import type { Server } from "node:http";
import type { Socket } from "node:net";
import { noteAccepted, Turns } from "../../concurrency/turns.ts";
import { PER_TURN } from "../../overload/bounds.ts";

/** New connections from which the service begins to read, of each address in turn. */
const turns = new Turns<string>(PER_TURN.accepted);

/**
 * Defers the listeners for new connections of a server to a turn of the event loop. In a burst, connections are
 * accepted first, and then read in turns between their addresses. Call it after these listeners have been added, and
 * before those that must know a connection at once.
 */
export function acceptInTurns(server: Server): void {
  const begin = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    noteAccepted();
    socket.on("error", () => socket.destroy());
    turns.add(socket.remoteAddress ?? "", () => {
      // The listeners would not see that the caller has closed the connection meanwhile, and a server that is being
      // closed would not see the connection.
      if (!server.listening || socket.readableEnded) socket.destroy();
      if (socket.destroyed) return false;
      for (const listener of begin) listener.call(server, socket);
      return true;
    });
  });
}
