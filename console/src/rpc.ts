import { createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { ActivityService } from "../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../gen/chorus/admin/v1/alerts_pb.js";
import { CapService } from "../../gen/chorus/admin/v1/caps_pb.js";
import { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { MemberService } from "../../gen/chorus/admin/v1/members_pb.js";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { currentWorkspace, owners } from "./session/session.ts";
import { watchSession } from "./session/watch-session.ts";

/** Says which workspace the page shows: the session may have another one, which a window beside it has chosen. */
const nameWorkspace: Interceptor = (next) => (request) => {
  if (currentWorkspace()) request.header.set("x-chorus-workspace", currentWorkspace());
  return next(request);
};

const transport = createConnectTransport({
  baseUrl: "/console/rpc",
  interceptors: [nameWorkspace, watchSession(owners)],
});

/** The services for owners. `workspace` stays empty in every request, which means the workspace of the session. */
export const activity = createClient(ActivityService, transport);
export const alerts = createClient(AlertService, transport);
export const caps = createClient(CapService, transport);
export const credits = createClient(CreditService, transport);
export const keys = createClient(KeyService, transport);
export const members = createClient(MemberService, transport);
export const usage = createClient(UsageService, transport);
export const workspaces = createClient(WorkspaceService, transport);
/** For the playground. */
export const generation = createClient(GenerationService, transport);
