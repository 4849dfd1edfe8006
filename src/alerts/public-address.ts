import { BlockList, isIP } from "node:net";

/**
 * Networks that are not the public internet. Source: the IANA registries of special-purpose addresses for IPv4 and IPv6
 * (RFC 6890), with multicast. IPv6 networks that contain IPv4 addresses are listed whole.
 */
const NETWORKS = [
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24",
  "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4",
  "::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20",
  "5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8",
];

// Two lists, because a network of mapped addresses would also block their IPv4 addresses.
const blocked = { 4: new BlockList(), 6: new BlockList() };
for (const network of NETWORKS.flatMap((line) => line.split(" "))) {
  const [address = "", bits] = network.split("/");
  if (isIP(address) === 4) blocked[4].addSubnet(address, Number(bits), "ipv4");
  else blocked[6].addSubnet(address, Number(bits), "ipv6");
}

/** Whether an IP address belongs to the public internet. */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 4) return !blocked[4].check(address, "ipv4");
  return version === 6 && !blocked[6].check(address, "ipv6");
}
