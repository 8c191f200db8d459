/**
 * The config.json of Docker's managed plugin: https://docs.docker.com/engine/extend/config/
 *
 * SwarmKit has fixed /data/published and /data/staged as the paths of volumes, so everything that has to be seen outside is below /data, and
 * the state and the log with it: they outlive an upgrade of the plugin, whose own root does not.
 */
const variable = (name: string, value: string, description: string) => ({
  name,
  value,
  description,
  settable: ['value'],
});

export const pluginConfig = {
  description: 'Switchboard: storage from many back ends, one file for each',
  documentation: 'https://docs.docker.com/engine/extend/',
  entrypoint: ['/switchboard', 'serve', '--config', '/etc/switchboard/switchboard.yaml'],
  workdir: '/',
  interface: {
    types: ['docker.volumedriver/1.0', 'docker.csicontroller/1.0', 'docker.csinode/1.0'],
    socket: 'switchboard.sock',
  },
  // Of the host: iscsiadm and nvme talk to its daemons, and back ends are reached as the host reaches them.
  network: { type: 'host' },
  ipchost: true,
  // To tell whether a container still uses a volume that Docker has forgotten, and for the host strategy nsenter.
  pidhost: true,
  linux: {
    capabilities: ['CAP_SYS_ADMIN', 'CAP_SYS_PTRACE', 'CAP_SYS_MODULE', 'CAP_NET_ADMIN', 'CAP_DAC_READ_SEARCH'],
    allowAllDevices: true,
    devices: null,
  },
  mounts: [
    {
      name: 'config',
      description: 'the folder with switchboard.yaml, and what that refers to',
      source: '/etc/switchboard',
      destination: '/etc/switchboard',
      type: 'bind',
      options: ['rbind', 'ro'],
      settable: ['source'],
    },
    {
      name: 'host',
      description: 'the root of the host, whose own programs mount, format and attach',
      source: '/',
      destination: '/host',
      type: 'bind',
      options: ['rbind', 'rshared'],
      settable: ['source'],
    },
    {
      name: 'dev',
      description: 'devices that come and go with volumes',
      source: '/dev',
      destination: '/dev',
      type: 'bind',
      options: ['rbind', 'rshared'],
      settable: null,
    },
    {
      name: 'hostname',
      description: 'the name of this node',
      source: '/etc/hostname',
      destination: '/node_hostname',
      type: 'bind',
      options: ['bind', 'ro'],
      settable: ['source'],
    },
  ],
  env: [
    { name: 'CSI_ENDPOINT', value: 'unix:///run/docker/plugins/switchboard.sock', description: '', settable: null },
    { name: 'SWITCHBOARD_STATE_DIR', value: '/data/state', description: '', settable: null },
    { name: 'SWITCHBOARD_DOCKER_MOUNT_ROOT', value: '/data/docker', description: '', settable: null },
    { name: 'SWITCHBOARD_HOST_NAME_FILE', value: '/node_hostname', description: '', settable: null },
    // Until dockerd has given it up, lest it kills the next one (src/cli/failure-delay.ts).
    { name: 'SWITCHBOARD_FAILURE_DELAY', value: '30', description: '', settable: null },
    { name: 'SWITCHBOARD_DOCKER_RESTART_UNSEEN', value: 'true', description: '', settable: null },
    variable('SWITCHBOARD_LOG_FILE', '/data/log/switchboard.log', 'where the log goes besides that of dockerd'),
    variable('SWITCHBOARD_LOG_FILE_SIZE', '10Mi', 'when it is rotated'),
    variable('SWITCHBOARD_LOG_LEVEL', 'info', 'error, warn, info, verbose or debug'),
    variable('CSI_NODE_ID', '', 'the name of this node; empty: the host name'),
    variable('SWITCHBOARD_CSI_NAME', '', 'empty: org.switchboard.csi'),
    variable('SWITCHBOARD_DOCKER_DEFAULT', '', 'options of Docker volumes, such as: connection=nas size=10Gi'),
    variable('SWITCHBOARD_DOCKER_SCOPE', '', 'global or local; empty: as the connections are'),
    variable(
      'SWITCHBOARD_DOCKER_SECRETS_FOLDER',
      '/etc/switchboard/secrets',
      'files that -o secret.KEY=@FILE may name',
    ),
    variable('SWITCHBOARD_SWARM', 'auto', 'auto, on or off'),
    variable('SWITCHBOARD_HOST_STRATEGY', 'auto', 'auto, chroot, nsenter or loader'),
    variable('SWITCHBOARD_HTTP_ENDPOINT', '', 'where metrics and the status page are; empty: nowhere'),
  ],
  propagatedMount: '/data',
} as const;
