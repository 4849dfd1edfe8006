/** What a person may do in a workspace, the strongest role first. proto/chorus/v1/options.proto describes them. */
export const ROLES = ["owner", "developer", "billing", "viewer"] as const;
export type Role = (typeof ROLES)[number];
