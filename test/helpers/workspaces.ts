import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import type { TestService } from "./service.ts";

/** Creates a workspace with credit and one key. @returns the key */
export async function createWorkspace({ rpcUrl, operatorToken }: TestService, name: string): Promise<string> {
  const transport = createConnectTransport({ baseUrl: rpcUrl, httpVersion: "1.1" });
  const headers = { authorization: `Bearer ${operatorToken}` };
  await createClient(WorkspaceService, transport).createWorkspace({ name }, { headers });
  const grant = { workspace: name, amount: "100000", reference: `for ${name}` };
  await createClient(CreditService, transport).grant(grant, { headers });
  const { secret } = await createClient(KeyService, transport).createKey({ workspace: name, name: "key" }, { headers });
  return secret;
}
